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
    let complete = try notedCompleteDecisions(device: device)
    return try all(
      """
      SELECT previous + 1 AS first, number - 1 AS last FROM
        (SELECT number, lag(number, 1, ?) OVER (ORDER BY number) AS previous FROM device_decision
         WHERE device = ? AND number > ?)
      WHERE number > previous + 1 ORDER BY number LIMIT 100
      """,
      [complete, device, complete]
    ) { try $0.integer("first")...(try $0.integer("last")) }
  }

  func completeDecisions(device: String) throws -> Int64 {
    var complete = try notedCompleteDecisions(device: device)
    // As many as are without a gap behind what is known to have none, and no others.
    while true {
      let next = try all(
        "SELECT number FROM device_decision WHERE device = ? AND number > ? ORDER BY number LIMIT 1000",
        [device, complete]
      ) { try $0.integer("number") }
      let count = Int64(zip(next, (complete + 1)...).prefix { $0 == $1 }.count)
      complete += count
      guard count == 1000 else { return complete }
    }
  }

  func noteCompleteDecisions(_ complete: Int64, device: String) throws {
    try change("UPDATE device SET decisions_complete = ? WHERE id = ?", [complete, device])
  }

  private func notedCompleteDecisions(device: String) throws -> Int64 {
    try first("SELECT decisions_complete FROM device WHERE id = ?", [device]) { try $0.integer("decisions_complete") }
      ?? 0
  }
}
