internal import CofferPolicy
internal import CofferServer
internal import GRDB

extension SQLiteTransaction {
  func apps(tenant: String) throws -> [AppApproval] {
    try all("SELECT approval FROM app WHERE tenant = ? ORDER BY number", [tenant], Self.approval)
  }

  func app(tenant: String, id: String) throws -> AppApproval? {
    try first("SELECT approval FROM app WHERE tenant = ? AND id = ?", [tenant, id], Self.approval)
  }

  func app(tenant: String, identity: AppIdentity) throws -> AppApproval? {
    try first(
      "SELECT approval FROM app WHERE tenant = ? AND bundle_id = ? AND team_id = ?",
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
      "UPDATE OR IGNORE app SET bundle_id = ?, team_id = ?, approval = ? WHERE tenant = ? AND id = ?",
      [app.bundleId, app.teamId, try Self.json(app), tenant, app.id]) == 1
  }

  func deleteApp(tenant: String, id: String) throws -> Bool {
    try change("DELETE FROM app WHERE tenant = ? AND id = ?", [tenant, id]) == 1
  }

  private static func approval(_ row: StoredRow) throws -> AppApproval { try row.json(AppApproval.self, "approval") }
}
