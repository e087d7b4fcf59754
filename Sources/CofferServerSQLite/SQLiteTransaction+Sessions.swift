internal import CofferServer
internal import Foundation
internal import GRDB

extension SQLiteTransaction {
  func insert(_ session: Session, hash: [UInt8], now: Int64) throws {
    try change(
      "DELETE FROM session WHERE administrator = ? AND (created_at <= ? OR last_seen_at <= ? OR created_at > ?)",
      [session.administrator, now - Session.lifetime, now - Session.idleTime, now + Session.tolerance])
    try change(
      "INSERT INTO session (hash, id, administrator, created_at, last_seen_at) VALUES (?, ?, ?, ?, ?)",
      [Data(hash), session.id, session.administrator, session.createdAt, session.lastSeenAt])
  }

  func session(hash: [UInt8]) throws -> (Session, Administrator)? {
    let found = try first("SELECT * FROM session WHERE hash = ?", [Data(hash)]) { row in
      (
        id: try row.text("id"), administrator: try row.text("administrator"),
        createdAt: try row.integer("created_at"), lastSeenAt: try row.integer("last_seen_at")
      )
    }
    guard let found,
      let person = try first("SELECT * FROM administrator WHERE id = ?", [found.administrator], Self.administrator)
    else { return nil }
    let session = Session(
      id: found.id, tenant: person.tenant, administrator: person.id, createdAt: found.createdAt,
      lastSeenAt: found.lastSeenAt)
    return (session, person)
  }

  func session(id: String) throws -> Session? {
    try first(
      """
      SELECT session.*, administrator.tenant FROM session JOIN administrator ON administrator.id = session.administrator
      WHERE session.id = ?
      """,
      [id]
    ) { row in
      Session(
        id: id, tenant: try row.text("tenant"), administrator: try row.text("administrator"),
        createdAt: try row.integer("created_at"), lastSeenAt: try row.integer("last_seen_at"))
    }
  }

  func noteSession(id: String, seenAt: Int64) throws {
    try change("UPDATE session SET last_seen_at = ? WHERE id = ?", [seenAt, id])
  }

  func deleteSession(id: String) throws { try change("DELETE FROM session WHERE id = ?", [id]) }

  func deleteSessions(administrator: String) throws {
    try change("DELETE FROM session WHERE administrator = ?", [administrator])
  }
}

extension SQLiteTransaction {
  func keptRequest(key: [UInt8], tenant: String, now: Int64) throws -> KeptRequest? {
    try first(
      "SELECT * FROM kept_request WHERE key = ? AND tenant = ? AND expires_at > ?", [Data(key), tenant, now]
    ) { row in
      KeptRequest(
        key: key, tenant: tenant, body: try row.bytes("body"), sealedAnswer: try row.bytes("sealed_answer"),
        expiresAt: try row.integer("expires_at"))
    }
  }

  func insert(_ request: KeptRequest, now: Int64) throws {
    try change("DELETE FROM kept_request WHERE expires_at <= ?", [now])
    try change(
      "INSERT INTO kept_request (key, tenant, body, sealed_answer, expires_at) VALUES (?, ?, ?, ?, ?)",
      [Data(request.key), request.tenant, Data(request.body), Data(request.sealedAnswer), request.expiresAt])
  }
}
