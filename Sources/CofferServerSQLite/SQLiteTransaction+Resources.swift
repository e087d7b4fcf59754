internal import CofferServer
internal import GRDB

extension SQLiteTransaction {
  func resource(_ kind: ResourceKind, id: String, tenant: String) throws -> StoredResource? {
    try first(
      "SELECT * FROM resource WHERE tenant = ? AND kind = ? AND id = ?", [tenant, kind.rawValue, id], Self.resource)
  }

  func resources(_ kind: ResourceKind, tenant: String) throws -> [StoredResource] {
    try all(
      "SELECT * FROM resource WHERE tenant = ? AND kind = ? ORDER BY number", [tenant, kind.rawValue], Self.resource)
  }

  func resources(
    _ kind: ResourceKind, tenant: String, after: Int64, limit: Int
  ) throws -> [Numbered<StoredResource>] {
    try all(
      "SELECT * FROM resource WHERE tenant = ? AND kind = ? AND number > ? ORDER BY number LIMIT ?",
      [tenant, kind.rawValue, after, limit]
    ) { (number: try $0.integer("number"), value: try Self.resource($0)) }
  }

  func countResources(_ kind: ResourceKind, tenant: String) throws -> Int64 {
    try first("SELECT count(*) AS number FROM resource WHERE tenant = ? AND kind = ?", [tenant, kind.rawValue]) {
      try $0.integer("number")
    } ?? 0
  }

  func insert(_ resource: StoredResource, tenant: String) throws -> Bool {
    try change(
      "INSERT INTO resource (tenant, kind, id, body) VALUES (?, ?, ?, ?) ON CONFLICT (tenant, kind, id) DO NOTHING",
      [tenant, resource.kind.rawValue, resource.id, resource.body]) == 1
  }

  func update(_ resource: StoredResource, tenant: String) throws -> Bool {
    try change(
      "UPDATE resource SET body = ? WHERE tenant = ? AND kind = ? AND id = ?",
      [resource.body, tenant, resource.kind.rawValue, resource.id]) == 1
  }

  func deleteResource(_ kind: ResourceKind, id: String, tenant: String) throws -> Bool {
    try change("DELETE FROM resource WHERE tenant = ? AND kind = ? AND id = ?", [tenant, kind.rawValue, id]) == 1
  }

  func deleteResources(_ kind: ResourceKind, tenant: String) throws {
    try change("DELETE FROM resource WHERE tenant = ? AND kind = ?", [tenant, kind.rawValue])
  }

  private static func resource(_ row: StoredRow) throws -> StoredResource {
    StoredResource(
      kind: try row.value("kind", try row.text("kind")) { ResourceKind(rawValue: $0) }, id: try row.text("id"),
      body: try row.text("body"))
  }
}
