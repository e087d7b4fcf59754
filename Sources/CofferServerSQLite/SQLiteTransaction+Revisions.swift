internal import CofferServer
internal import GRDB

extension SQLiteTransaction {
  func currentRevision(tenant: String) throws -> Revision? {
    try first("SELECT * FROM revision WHERE tenant = ? ORDER BY number DESC LIMIT 1", [tenant], Self.revision)
  }

  func currentRevisionNumber(tenant: String) throws -> Int64? {
    try first("SELECT max(number) AS number FROM revision WHERE tenant = ?", [tenant]) {
      try $0.optionalInteger("number")
    } ?? nil
  }

  func revision(tenant: String, number: Int64) throws -> Revision? {
    try first("SELECT * FROM revision WHERE tenant = ? AND number = ?", [tenant, number], Self.revision)
  }

  func revisions(tenant: String, before: Int64, limit: Int) throws -> [Revision] {
    try all(
      "SELECT * FROM revision WHERE tenant = ? AND number < ? ORDER BY number DESC LIMIT ?", [tenant, before, limit],
      Self.revision)
  }

  func revisionHeads(tenant: String, before: Int64, limit: Int) throws -> [RevisionHead] {
    try all(
      """
      SELECT number, digest, key_epoch, issued_at, not_after FROM revision WHERE tenant = ? AND number < ?
      ORDER BY number DESC LIMIT ?
      """, [tenant, before, limit], Self.head)
  }

  func insert(_ revision: Revision) throws {
    try change(
      """
      INSERT INTO revision (tenant, number, bundle, digest, key_epoch, issued_at, not_after)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      """,
      [
        revision.tenant, revision.number, revision.bundle, revision.digest, revision.keyEpoch, revision.issuedAt,
        revision.notAfter,
      ])
  }

  private static func head(_ row: StoredRow) throws -> RevisionHead {
    RevisionHead(
      number: try row.integer("number"), digest: try row.text("digest"), keyEpoch: try row.integer("key_epoch"),
      issuedAt: try row.integer("issued_at"), notAfter: try row.integer("not_after"))
  }

  private static func revision(_ row: StoredRow) throws -> Revision {
    Revision(
      tenant: try row.text("tenant"), number: try row.integer("number"), bundle: try row.text("bundle"),
      digest: try row.text("digest"), keyEpoch: try row.integer("key_epoch"), issuedAt: try row.integer("issued_at"),
      notAfter: try row.integer("not_after"))
  }
}
