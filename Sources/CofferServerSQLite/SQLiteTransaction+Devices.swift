internal import CofferAPI
internal import CofferCrypto
internal import CofferPolicy
internal import CofferServer
internal import Foundation
internal import GRDB

extension SQLiteTransaction {
  func insert(_ enrollment: Enrollment, hash: [UInt8]) throws {
    try change(
      "INSERT INTO enrollment (hash, id, tenant, created_at, expires_at, created_by) VALUES (?, ?, ?, ?, ?, ?)",
      [
        Data(hash), enrollment.id, enrollment.tenant, enrollment.createdAt, enrollment.expiresAt, enrollment.createdBy,
      ])
  }

  func unusedEnrollment(hash: [UInt8]) throws -> Enrollment? {
    try first("SELECT * FROM enrollment WHERE hash = ? AND used = 0", [Data(hash)], Self.enrollment)
  }

  func redeem(_ enrollment: Enrollment, for device: Device) throws {
    try change("UPDATE enrollment SET used = 1 WHERE id = ?", [enrollment.id])
    try change(
      "INSERT INTO device (id, tenant, key, key_id, platform, enrollment, enrolled_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
      [
        device.id, device.tenant, Data(device.key.bytes), device.key.keyID, device.platform, enrollment.id,
        device.enrolledAt,
      ])
  }

  func device(id: String) throws -> Device? {
    try first("SELECT * FROM device WHERE id = ?", [id], Self.device)
  }

  func devices(tenant: String) throws -> [Device] {
    try all("SELECT * FROM device WHERE tenant = ? ORDER BY enrolled_at, id", [tenant], Self.device)
  }

  func devices(tenant: String, after: Int64, limit: Int) throws -> [Numbered<Device>] {
    try all(
      "SELECT rowid AS number, * FROM device WHERE tenant = ? AND rowid > ? ORDER BY rowid LIMIT ?",
      [tenant, after, limit]
    ) { (number: try $0.integer("number"), value: try Self.device($0)) }
  }

  func device(tenant: String, id: String) throws -> Device? {
    try first("SELECT * FROM device WHERE tenant = ? AND id = ?", [tenant, id], Self.device)
  }

  func deviceState(tenant: String, id: String) throws -> DeviceState? {
    try first("SELECT * FROM device WHERE tenant = ? AND id = ?", [tenant, id]) { row in
      let report = try row.optionalText("report").map { _ in try row.json(DeviceReport.self, "report") }
      return DeviceState(
        lastSeenAt: try row.optionalInteger("last_seen_at"), report: report,
        reportedAt: try row.optionalInteger("reported_at"), groups: try row.json([String].self, "device_groups"))
    }
  }

  func update(_ state: DeviceState, tenant: String, id: String) throws {
    try change(
      "UPDATE device SET last_seen_at = ?, report = ?, reported_at = ?, device_groups = ? WHERE tenant = ? AND id = ?",
      [
        state.lastSeenAt, try state.report.map { try Self.json($0) }, state.reportedAt, try Self.json(state.groups),
        tenant, id,
      ])
  }

  func noteDevice(id: String, seenAt: Int64) throws {
    try change("UPDATE device SET last_seen_at = ? WHERE id = ?", [seenAt, id])
  }

  func unusedEnrollments(
    tenant: String, now: Int64, after: Int64, limit: Int
  ) throws -> [Numbered<Enrollment>] {
    try all(
      """
      SELECT rowid AS number, * FROM enrollment WHERE tenant = ? AND used = 0 AND expires_at > ? AND rowid > ?
      ORDER BY rowid LIMIT ?
      """,
      [tenant, now, after, limit]
    ) { (number: try $0.integer("number"), value: try Self.enrollment($0)) }
  }

  func unusedEnrollments(tenant: String, createdBy: String) throws -> [Enrollment] {
    try all(
      "SELECT * FROM enrollment WHERE tenant = ? AND used = 0 AND created_by = ?", [tenant, createdBy], Self.enrollment)
  }

  func deleteUnusedEnrollment(tenant: String, id: String) throws -> Bool {
    try change("DELETE FROM enrollment WHERE tenant = ? AND id = ? AND used = 0", [tenant, id]) == 1
  }

  func deleteDevice(tenant: String, id: String) throws -> Bool {
    try change("DELETE FROM device WHERE tenant = ? AND id = ?", [tenant, id]) == 1
  }

  func noteAssertion(device: String, id: String, expiresAt: Int64, now: Int64) throws -> Bool {
    let forgotten = try first(
      "SELECT max(expires_at) AS expires_at FROM assertion WHERE device = ? AND expires_at <= ?", [device, now]
    ) { try $0.optionalInteger("expires_at") }
    if let forgotten = forgotten ?? nil {
      try change(
        "UPDATE device SET assertions_forgotten = max(assertions_forgotten, ?) WHERE id = ?", [forgotten, device])
      try change("DELETE FROM assertion WHERE device = ? AND expires_at <= ?", [device, now])
    }
    let known = try first("SELECT assertions_forgotten FROM device WHERE id = ?", [device]) {
      try $0.integer("assertions_forgotten")
    }
    guard let known, expiresAt > known else { return false }
    return try change(
      "INSERT INTO assertion (device, id, expires_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
      [device, id, expiresAt]) == 1
  }

  func insertDeviceToken(hash: [UInt8], device: String, expiresAt: Int64, now: Int64) throws {
    try change("DELETE FROM device_token WHERE device = ? AND expires_at <= ?", [device, now])
    try change(
      "INSERT INTO device_token (hash, device, expires_at) VALUES (?, ?, ?)", [Data(hash), device, expiresAt])
  }

  func device(tokenHash: [UInt8]) throws -> (device: Device, expiresAt: Int64)? {
    try first(
      """
      SELECT device.*, device_token.expires_at FROM device_token JOIN device ON device.id = device_token.device
      WHERE device_token.hash = ?
      """,
      [Data(tokenHash)]
    ) { (device: try Self.device($0), expiresAt: try $0.integer("expires_at")) }
  }

  private static func enrollment(_ row: StoredRow) throws -> Enrollment {
    Enrollment(
      id: try row.text("id"), tenant: try row.text("tenant"), createdAt: try row.integer("created_at"),
      expiresAt: try row.integer("expires_at"), createdBy: try row.optionalText("created_by"))
  }

  private static func device(_ row: StoredRow) throws -> Device {
    Device(
      id: try row.text("id"), tenant: try row.text("tenant"),
      key: try row.value("key", try row.bytes("key")) { try VerifyingKey(bytes: $0) },
      platform: try row.optionalText("platform"), enrolledAt: try row.integer("enrolled_at"))
  }
}
