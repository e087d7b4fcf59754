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
    try first("SELECT * FROM administrator WHERE tenant = ? AND email = ?", [tenant, email]) { row in
      func number(_ column: String) throws -> Int { Int(try row.integer(column)) }
      let salt = try row.bytes("password_salt")
      let derivation = try row.value("password_cost", salt) {
        try PasscodeDerivation(
          costExponent: number("password_cost"), blockSize: number("password_block_size"),
          parallelism: number("password_parallelism"), salt: $0)
      }
      return Administrator(
        id: try row.text("id"), tenant: tenant, email: try row.text("email"),
        role: try row.value("role", try row.text("role")) { Role(rawValue: $0) },
        password: PasswordRecord(derivation: derivation, commitment: try row.bytes("password_commitment")),
        createdAt: try row.integer("created_at"))
    }
  }

  func insert(_ token: APIToken, hash: [UInt8]) throws {
    try change(
      "INSERT INTO api_token (hash, id, tenant, role, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
      [Data(hash), token.id, token.tenant, token.role.rawValue, token.createdAt, token.expiresAt])
  }

  func apiToken(hash: [UInt8]) throws -> APIToken? {
    try first("SELECT * FROM api_token WHERE hash = ?", [Data(hash)]) { row in
      APIToken(
        id: try row.text("id"), tenant: try row.text("tenant"),
        role: try row.value("role", try row.text("role")) { Role(rawValue: $0) },
        createdAt: try row.integer("created_at"), expiresAt: try row.integer("expires_at"))
    }
  }
}
