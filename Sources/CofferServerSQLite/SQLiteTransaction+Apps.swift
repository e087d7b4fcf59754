internal import CofferPolicy
internal import CofferServer
internal import GRDB

extension SQLiteTransaction {
  func appRecord(tenant: String, id: String) throws -> AppRecord? {
    try first("SELECT * FROM app WHERE tenant = ? AND id = ?", [tenant, id], Self.appRecord)
  }

  func appRecord(tenant: String, identity: AppIdentity) throws -> AppRecord? {
    try first(
      "SELECT * FROM app WHERE tenant = ? AND bundle_id = ? AND team_id = ?",
      [tenant, identity.bundleId, identity.teamId], Self.appRecord)
  }

  func appRecords(tenant: String, after: Int64, limit: Int) throws -> [Numbered<AppRecord>] {
    try all(
      "SELECT * FROM app WHERE tenant = ? AND number > ? ORDER BY number LIMIT ?", [tenant, after, limit]
    ) { (number: try $0.integer("number"), value: try Self.appRecord($0)) }
  }

  func appsInForce(tenant: String) throws -> [AppRecord] {
    try all("SELECT * FROM app WHERE tenant = ? AND state = 'approved' ORDER BY number", [tenant], Self.appRecord)
  }

  func apps(tenant: String, expiredBy now: Int64) throws -> [AppRecord] {
    try all(
      "SELECT * FROM app WHERE tenant = ? AND state = 'approved' AND expires_at <= ? ORDER BY number", [tenant, now],
      Self.appRecord)
  }

  func nextAppExpiry(tenant: String) throws -> Int64? {
    try first(
      "SELECT min(expires_at) AS next FROM app WHERE tenant = ? AND state = 'approved'", [tenant]
    ) { try $0.optionalInteger("next") } ?? nil
  }

  func countApps(tenant: String) throws -> Int64 {
    try first("SELECT count(*) AS number FROM app WHERE tenant = ?", [tenant]) { try $0.integer("number") } ?? 0
  }

  func countApps(tenant: String, _ state: AppRecord.State) throws -> Int64 {
    try first("SELECT count(*) AS number FROM app WHERE tenant = ? AND state = ?", [tenant, state.rawValue]) {
      try $0.integer("number")
    } ?? 0
  }

  func apps(tenant: String, _ state: AppRecord.State, limit: Int) throws -> [AppRecord] {
    try all(
      "SELECT * FROM app WHERE tenant = ? AND state = ? ORDER BY number LIMIT ?", [tenant, state.rawValue, limit],
      Self.appRecord)
  }

  func appsEnding(tenant: String, before moment: Int64, limit: Int) throws -> [AppRecord] {
    try all(
      """
      SELECT * FROM app WHERE tenant = ? AND state = 'approved' AND expires_at < ? ORDER BY expires_at, number LIMIT ?
      """, [tenant, moment, limit], Self.appRecord)
  }

  func insert(_ app: AppRecord, tenant: String) throws -> Bool {
    try change(
      """
      INSERT INTO app (tenant, id, bundle_id, team_id, approval, state, expires_at, details)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, bundle_id, team_id) DO NOTHING
      """,
      [
        tenant, app.approval.id, app.approval.bundleId, app.approval.teamId, try Self.json(app.approval),
        app.state.rawValue, app.expiresAt, try Self.json(app.details),
      ]) == 1
  }

  func update(_ app: AppRecord, tenant: String) throws -> Bool {
    try change(
      """
      UPDATE OR IGNORE app SET bundle_id = ?, team_id = ?, approval = ?, state = ?, expires_at = ?, details = ?
      WHERE tenant = ? AND id = ?
      """,
      [
        app.approval.bundleId, app.approval.teamId, try Self.json(app.approval), app.state.rawValue, app.expiresAt,
        try Self.json(app.details), tenant, app.approval.id,
      ]) == 1
  }

  private static func appRecord(_ row: StoredRow) throws -> AppRecord {
    AppRecord(
      approval: try approval(row), state: try row.value("state", try row.text("state")) { .init(rawValue: $0) },
      expiresAt: try row.optionalInteger("expires_at"), details: try row.json(AppRecord.Details.self, "details"))
  }
}

extension SQLiteTransaction {
  func apps(tenant: String) throws -> [AppApproval] {
    try all(
      "SELECT approval FROM app WHERE tenant = ? AND state = 'approved' ORDER BY number", [tenant], Self.approval)
  }

  func app(tenant: String, id: String) throws -> AppApproval? {
    try first(
      "SELECT approval FROM app WHERE tenant = ? AND id = ? AND state = 'approved'", [tenant, id], Self.approval)
  }

  func app(tenant: String, identity: AppIdentity) throws -> AppApproval? {
    try first(
      "SELECT approval FROM app WHERE tenant = ? AND bundle_id = ? AND team_id = ? AND state = 'approved'",
      [tenant, identity.bundleId, identity.teamId], Self.approval)
  }

  func insert(_ app: AppApproval, tenant: String) throws -> Bool {
    try change(
      """
      INSERT INTO app (tenant, id, bundle_id, team_id, approval) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (tenant, bundle_id, team_id) DO NOTHING
      """,
      [tenant, app.id, app.bundleId, app.teamId, try Self.json(app)]) == 1
  }

  func update(_ app: AppApproval, tenant: String) throws -> Bool {
    try change(
      """
      UPDATE OR IGNORE app SET bundle_id = ?, team_id = ?, approval = ? WHERE tenant = ? AND id = ?
        AND state = 'approved'
      """,
      [app.bundleId, app.teamId, try Self.json(app), tenant, app.id]) == 1
  }

  func deleteApp(tenant: String, id: String) throws -> Bool {
    try change("DELETE FROM app WHERE tenant = ? AND id = ?", [tenant, id]) == 1
  }

  private static func approval(_ row: StoredRow) throws -> AppApproval { try row.json(AppApproval.self, "approval") }
}
