internal import CofferServer
internal import GRDB

extension SQLiteTransaction {
  func currentRevision(tenant: String) throws -> Revision? {
    try first("SELECT * FROM revision WHERE tenant = ? ORDER BY number DESC LIMIT 1", [tenant]) { row in
      Revision(
        tenant: tenant, number: try row.integer("number"), bundle: try row.text("bundle"),
        digest: try row.text("digest"), keyEpoch: try row.integer("key_epoch"),
        issuedAt: try row.integer("issued_at"), notAfter: try row.integer("not_after"))
    }
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
}
