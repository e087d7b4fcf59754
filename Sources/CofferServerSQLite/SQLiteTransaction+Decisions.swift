internal import CofferServer
internal import GRDB

extension SQLiteTransaction {
  func insert(_ decision: DeviceDecision, device: String) throws {
    try change(
      """
      INSERT INTO device_decision (device, number, entry, received_at) VALUES (?, ?, ?, ?)
      ON CONFLICT (device, number) DO NOTHING
      """,
      [device, decision.number, decision.entry, decision.receivedAt])
  }

  func decisions(device: String, after: Int64, limit: Int) throws -> [DeviceDecision] {
    try all(
      "SELECT * FROM device_decision WHERE device = ? AND number > ? ORDER BY number LIMIT ?", [device, after, limit]
    ) { try Self.decision($0) }
  }

  func decisions(device: String, before: Int64, limit: Int) throws -> [DeviceDecision] {
    try all(
      "SELECT * FROM device_decision WHERE device = ? AND number < ? ORDER BY number DESC LIMIT ?",
      [device, before, limit]
    ) { try Self.decision($0) }
  }

  private static func decision(_ row: StoredRow) throws -> DeviceDecision {
    DeviceDecision(
      number: try row.integer("number"), entry: try row.text("entry"), receivedAt: try row.integer("received_at"))
  }

  func decisionGaps(device: String) throws -> [ClosedRange<Int64>] {
    try all(
      """
      SELECT previous + 1 AS first, number - 1 AS last FROM
        (SELECT number, lag(number, 1, 0) OVER (ORDER BY number) AS previous FROM device_decision WHERE device = ?)
      WHERE number > previous + 1 ORDER BY number LIMIT 100
      """,
      [device]
    ) { try $0.integer("first")...(try $0.integer("last")) }
  }

  func completeDecisions(device: String) throws -> Int64 {
    if let gap = try decisionGaps(device: device).first { return gap.lowerBound - 1 }
    return try first("SELECT max(number) AS newest FROM device_decision WHERE device = ?", [device]) {
      try $0.optionalInteger("newest")
    }.flatMap(\.self) ?? 0
  }
}
