internal import CofferServer
internal import GRDB

extension SQLiteTransaction {
  func keep(_ log: DeviceLog, device: String) throws {
    try change(
      """
      INSERT INTO device_log (device, lines, received_at, sent_at) VALUES (?, ?, ?, ?)
      ON CONFLICT (device) DO UPDATE
        SET lines = excluded.lines, received_at = excluded.received_at, sent_at = excluded.sent_at
      """,
      [device, try Self.json(log.lines), log.receivedAt, log.sentAt])
  }

  func deviceLog(device: String) throws -> DeviceLog? {
    try first("SELECT * FROM device_log WHERE device = ?", [device]) { row in
      DeviceLog(
        lines: try row.json([String].self, "lines"), receivedAt: try row.integer("received_at"),
        sentAt: try row.optionalInteger("sent_at"))
    }
  }
}
