internal import CofferCrypto
internal import CofferServer
internal import Foundation
internal import GRDB

extension SQLiteTransaction {
  func insert(_ administrator: Administrator) throws -> Bool {
    let password = administrator.password
    return try change(
      """
      INSERT INTO administrator (id, tenant, email, role, password_cost, password_block_size, password_parallelism,
        password_salt, password_commitment, created_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, email) DO NOTHING
      """,
      [
        administrator.id, administrator.tenant, administrator.email, administrator.role.rawValue,
        password.derivation.costExponent, password.derivation.blockSize, password.derivation.parallelism,
        Data(password.derivation.salt), Data(password.commitment), administrator.createdAt,
      ]) == 1
  }

  func administrator(tenant: String, email: String) throws -> Administrator? {
    try first("SELECT * FROM administrator WHERE tenant = ? AND email = ?", [tenant, email], Self.administrator)
  }

  func administrator(tenant: String, id: String) throws -> Administrator? {
    try first("SELECT * FROM administrator WHERE tenant = ? AND id = ?", [tenant, id], Self.administrator)
  }

  func administrators(tenant: String, after: Int64, limit: Int) throws -> [Numbered<Administrator>] {
    try all(
      "SELECT rowid AS number, * FROM administrator WHERE tenant = ? AND rowid > ? ORDER BY rowid LIMIT ?",
      [tenant, after, limit]
    ) { (number: try $0.integer("number"), value: try Self.administrator($0)) }
  }

  func countAdministrators(tenant: String, role: Role) throws -> Int {
    try all("SELECT id FROM administrator WHERE tenant = ? AND role = ?", [tenant, role.rawValue]) { _ in 1 }.count
  }

  func hasAdministrators() throws -> Bool {
    try first("SELECT id FROM administrator LIMIT 1", []) { _ in true } ?? false
  }

  func update(_ administrator: Administrator) throws {
    let password = administrator.password
    try change(
      """
      UPDATE administrator SET role = ?, password_cost = ?, password_block_size = ?, password_parallelism = ?,
        password_salt = ?, password_commitment = ?, sealed_one_time_secret = ?, pending_one_time_secret = ?,
        last_one_time_step = ? WHERE tenant = ? AND id = ?
      """,
      [
        administrator.role.rawValue, password.derivation.costExponent, password.derivation.blockSize,
        password.derivation.parallelism, Data(password.derivation.salt), Data(password.commitment),
        administrator.sealedOneTimeSecret.map { Data($0) }, administrator.pendingOneTimeSecret.map { Data($0) },
        administrator.lastOneTimeStep, administrator.tenant, administrator.id,
      ])
  }

  func deleteAdministrator(tenant: String, id: String) throws {
    try change("DELETE FROM administrator WHERE tenant = ? AND id = ?", [tenant, id])
  }

  static func administrator(_ row: StoredRow) throws -> Administrator {
    func number(_ column: String) throws -> Int { Int(try row.integer(column)) }
    let salt = try row.bytes("password_salt")
    let derivation = try row.value("password_cost", salt) {
      try PasscodeDerivation(
        costExponent: number("password_cost"), blockSize: number("password_block_size"),
        parallelism: number("password_parallelism"), salt: $0)
    }
    return Administrator(
      id: try row.text("id"), tenant: try row.text("tenant"), email: try row.text("email"), role: try row.role(),
      password: PasswordRecord(derivation: derivation, commitment: try row.bytes("password_commitment")),
      sealedOneTimeSecret: try row.optionalBytes("sealed_one_time_secret"),
      pendingOneTimeSecret: try row.optionalBytes("pending_one_time_secret"),
      lastOneTimeStep: try row.integer("last_one_time_step"), createdAt: try row.integer("created_at"))
  }
}

extension SQLiteTransaction {
  func insert(_ invitation: Invitation, hash: [UInt8], now: Int64) throws {
    try change("DELETE FROM invitation WHERE expires_at <= ?", [now])
    try change(
      """
      INSERT INTO invitation (hash, id, tenant, email, role, created_at, expires_at, created_by)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        Data(hash), invitation.id, invitation.tenant, invitation.email, invitation.role.rawValue,
        invitation.createdAt, invitation.expiresAt, invitation.createdBy,
      ])
  }

  func invitation(hash: [UInt8]) throws -> Invitation? {
    try first("SELECT * FROM invitation WHERE hash = ?", [Data(hash)], Self.invitation)
  }

  func invitation(tenant: String, id: String) throws -> Invitation? {
    try first("SELECT * FROM invitation WHERE tenant = ? AND id = ?", [tenant, id], Self.invitation)
  }

  func invitations(tenant: String, now: Int64, after: Int64, limit: Int) throws -> [Numbered<Invitation>] {
    try all(
      """
      SELECT rowid AS number, * FROM invitation WHERE tenant = ? AND expires_at > ? AND rowid > ?
      ORDER BY rowid LIMIT ?
      """,
      [tenant, now, after, limit]
    ) { (number: try $0.integer("number"), value: try Self.invitation($0)) }
  }

  func invitations(tenant: String, createdBy: String) throws -> [Invitation] {
    try all("SELECT * FROM invitation WHERE tenant = ? AND created_by = ?", [tenant, createdBy], Self.invitation)
  }

  func deleteInvitation(tenant: String?, id: String) throws -> Bool {
    // IS compares NULL, too.
    try change("DELETE FROM invitation WHERE tenant IS ? AND id = ?", [tenant, id]) == 1
  }

  func deleteSetUpLinks() throws { try change("DELETE FROM invitation WHERE tenant IS NULL", []) }

  private static func invitation(_ row: StoredRow) throws -> Invitation {
    Invitation(
      id: try row.text("id"), tenant: try row.optionalText("tenant"), email: try row.optionalText("email"),
      role: try row.role(), createdAt: try row.integer("created_at"), expiresAt: try row.integer("expires_at"),
      createdBy: try row.optionalText("created_by"))
  }
}

extension SQLiteTransaction {
  func insert(_ token: APIToken, hash: [UInt8]) throws {
    try change(
      """
      INSERT INTO api_token (hash, id, tenant, role, name, scopes, created_at, expires_at, created_by)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        Data(hash), token.id, token.tenant, token.role.rawValue, token.name,
        try token.scopes.map { try Self.json($0.map(\.rawValue).sorted()) }, token.createdAt, token.expiresAt,
        token.createdBy,
      ])
  }

  func apiToken(hash: [UInt8]) throws -> APIToken? {
    try first("SELECT * FROM api_token WHERE hash = ?", [Data(hash)], Self.token)
  }

  func apiToken(tenant: String, id: String) throws -> APIToken? {
    try first("SELECT * FROM api_token WHERE tenant = ? AND id = ?", [tenant, id], Self.token)
  }

  func apiTokens(tenant: String, after: Int64, limit: Int) throws -> [Numbered<APIToken>] {
    try all(
      "SELECT rowid AS number, * FROM api_token WHERE tenant = ? AND rowid > ? ORDER BY rowid LIMIT ?",
      [tenant, after, limit]
    ) { (number: try $0.integer("number"), value: try Self.token($0)) }
  }

  func apiTokens(tenant: String, createdBy: String) throws -> [APIToken] {
    try all("SELECT * FROM api_token WHERE tenant = ? AND created_by = ?", [tenant, createdBy], Self.token)
  }

  func deleteAPIToken(tenant: String, id: String) throws -> Bool {
    try change("DELETE FROM api_token WHERE tenant = ? AND id = ?", [tenant, id]) == 1
  }

  private static func token(_ row: StoredRow) throws -> APIToken {
    let scopes = try row.optionalText("scopes").map { _ in try row.json(Set<Permission>.self, "scopes") }
    return APIToken(
      id: try row.text("id"), tenant: try row.text("tenant"), role: try row.role(), name: try row.text("name"),
      scopes: scopes, createdAt: try row.integer("created_at"), expiresAt: try row.integer("expires_at"),
      createdBy: try row.optionalText("created_by"))
  }
}

extension StoredRow {
  fileprivate func role() throws -> Role { try value("role", try text("role")) { Role(rawValue: $0) } }
}
