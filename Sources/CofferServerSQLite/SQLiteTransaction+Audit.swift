internal import CofferServer
internal import Foundation
internal import GRDB

extension SQLiteTransaction {
  func lastAuditRecord(tenant: String) throws -> AuditRecord? {
    try first("SELECT * FROM audit WHERE tenant = ? ORDER BY number DESC LIMIT 1", [tenant], Self.auditRecord)
  }

  func append(_ record: AuditRecord, tenant: String) throws {
    try change(
      "INSERT INTO audit (tenant, number, entry, hash) VALUES (?, ?, ?, ?)",
      [tenant, record.number, Data(record.entry), Data(record.hash)])
  }

  func auditRecords(tenant: String, after: Int64, limit: Int) throws -> [AuditRecord] {
    try all(
      "SELECT * FROM audit WHERE tenant = ? AND number > ? ORDER BY number LIMIT ?", [tenant, after, limit],
      Self.auditRecord)
  }

  private static func auditRecord(_ row: StoredRow) throws -> AuditRecord {
    AuditRecord(number: try row.integer("number"), entry: try row.bytes("entry"), hash: try row.bytes("hash"))
  }
}
