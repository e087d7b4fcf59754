internal import CofferPolicy
internal import CofferServer
internal import GRDB

extension SQLiteTransaction {
  func insert(_ command: CommandRecord) throws -> Int64 {
    try change(
      """
      INSERT INTO command (id, tenant, device, kind, state, document, created_by, created_at, expires_at, position)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,
        (SELECT coalesce(max(position), 0) + 1 FROM command WHERE tenant = ? AND device = ?))
      """,
      [
        command.command.id, command.command.tenant, command.command.audience, command.command.kind.rawValue,
        command.state.rawValue, command.document, command.createdBy, command.command.issuedAt,
        command.command.notAfter, command.command.tenant, command.command.audience,
      ])
    return try lastCommandNumber(tenant: command.command.tenant, device: command.command.audience)
  }

  func update(_ command: CommandRecord) throws {
    try change(
      "UPDATE command SET state = ?, receipt = ?, answered_at = ? WHERE tenant = ? AND id = ?",
      [command.state.rawValue, command.receipt, command.answeredAt, command.command.tenant, command.command.id])
  }

  func command(tenant: String, id: String) throws -> CommandRecord? {
    try first("SELECT * FROM command WHERE tenant = ? AND id = ?", [tenant, id], Self.command)
  }

  func commands(tenant: String, device: String, after: Int64, limit: Int) throws -> [Numbered<CommandRecord>] {
    try all(
      "SELECT * FROM command WHERE tenant = ? AND device = ? AND number > ? ORDER BY number LIMIT ?",
      [tenant, device, after, limit]
    ) { (number: try $0.integer("number"), value: try Self.command($0)) }
  }

  func commands(tenant: String, device: String, before: Int64, limit: Int) throws -> [Numbered<CommandRecord>] {
    try all(
      "SELECT * FROM command WHERE tenant = ? AND device = ? AND position < ? ORDER BY position DESC LIMIT ?",
      [tenant, device, before, limit]
    ) { (number: try $0.integer("position"), value: try Self.command($0)) }
  }

  func pendingCommands(tenant: String, device: String, now: Int64) throws -> [CommandRecord] {
    try all(
      """
      SELECT * FROM command WHERE tenant = ? AND device = ? AND state = 'pending' AND expires_at >= ? ORDER BY number
      """,
      [tenant, device, now], Self.command)
  }

  func hasUnansweredCommand(_ kind: DeviceCommand.Kind, tenant: String, device: String) throws -> Bool {
    try first(
      "SELECT number FROM command WHERE tenant = ? AND device = ? AND state = 'pending' AND kind = ? LIMIT 1",
      [tenant, device, kind.rawValue]
    ) { _ in true } ?? false
  }

  func hasDoneCommand(_ kind: DeviceCommand.Kind, tenant: String, device: String) throws -> Bool {
    try first(
      "SELECT number FROM command WHERE tenant = ? AND device = ? AND state = 'done' AND kind = ? LIMIT 1",
      [tenant, device, kind.rawValue]
    ) { _ in true } ?? false
  }

  func pendingCommands(tenant: String, now: Int64) throws -> [CommandRecord] {
    try all(
      "SELECT * FROM command WHERE tenant = ? AND state = 'pending' AND expires_at >= ? ORDER BY number",
      [tenant, now],
      Self.command)
  }

  func replaceDocument(of command: DeviceCommand, by document: String) throws -> Int64 {
    try change(
      """
      UPDATE command SET document = ?, number = (SELECT max(number) + 1 FROM command),
        position = (SELECT max(position) + 1 FROM command WHERE tenant = ? AND device = ?)
      WHERE tenant = ? AND id = ?
      """,
      [document, command.tenant, command.audience, command.tenant, command.id])
    return try lastCommandNumber(tenant: command.tenant, device: command.audience)
  }

  func lastCommandNumber(tenant: String, device: String) throws -> Int64 {
    try first(
      "SELECT max(position) AS newest FROM command WHERE tenant = ? AND device = ?", [tenant, device]
    ) { try $0.optionalInteger("newest") }.flatMap(\.self) ?? 0
  }

  private static func command(_ row: StoredRow) throws -> CommandRecord {
    let (document, kind) = (
      try row.text("document"), try row.value("kind", try row.text("kind")) { DeviceCommand.Kind(rawValue: $0) }
    )
    let command = DeviceCommand(
      tenant: try row.text("tenant"), audience: try row.text("device"), id: try row.text("id"), kind: kind,
      issuedAt: try row.integer("created_at"), notAfter: try row.integer("expires_at"),
      clearing: kind == .clearPasscode ? DeviceCommand.statedClearing(in: document) : nil)
    return CommandRecord(
      command: command, document: document, createdBy: try row.text("created_by"),
      state: try row.value("state", try row.text("state")) { CommandRecord.State(rawValue: $0) },
      receipt: try row.optionalText("receipt"), answeredAt: try row.optionalInteger("answered_at"))
  }
}
