internal import CofferCrypto
internal import CofferPolicy
internal import CofferServer
internal import Foundation
internal import GRDB

extension SQLiteTransaction {
  func tenant(id: String) throws -> Tenant? {
    try first("SELECT * FROM tenant WHERE id = ?", [id], Self.tenant)
  }

  func tenant(name: String) throws -> Tenant? {
    try first("SELECT * FROM tenant WHERE name = ?", [name], Self.tenant)
  }

  func tenants(policyChangesBy now: Int64) throws -> [String] {
    try all("SELECT id FROM tenant WHERE policy_changes_at <= ?", [now]) { try $0.text("id") }
  }

  func insert(_ tenant: Tenant) throws -> Bool {
    let keys = tenant.keys
    return try change(
      """
      INSERT INTO tenant (id, name, root_key, sealed_root_key, signing_key, sealed_signing_key, key_epoch, keyset,
        keyset_not_after, settings, grace, created_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING
      """,
      [
        tenant.id, tenant.name, Data(keys.root.bytes), Data(keys.sealedRoot), Data(keys.signing.bytes),
        Data(keys.sealedSigning), keys.epoch, keys.keyset, keys.keysetNotAfter, try Self.json(tenant.settings),
        try Self.json(tenant.grace), tenant.createdAt,
      ]) == 1
  }

  func update(_ tenant: Tenant) throws {
    let keys = tenant.keys
    try change(
      """
      UPDATE tenant SET signing_key = ?, sealed_signing_key = ?, key_epoch = ?, keyset = ?, keyset_not_after = ?,
        settings = ?, grace = ?, four_eyes = ?, policy_changes_at = ?, delegations = ?, root_exported_at = ?
      WHERE id = ?
      """,
      [
        Data(keys.signing.bytes), Data(keys.sealedSigning), keys.epoch, keys.keyset, keys.keysetNotAfter,
        try Self.json(tenant.settings), try Self.json(tenant.grace), tenant.needsTwoApprovers,
        tenant.policyChangesAt, try Self.json(tenant.delegations), tenant.rootExportedAt, tenant.id,
      ])
  }

  private static func tenant(_ row: StoredRow) throws -> Tenant {
    func key(_ column: String) throws -> VerifyingKey {
      try row.value(column, try row.bytes(column)) { try VerifyingKey(bytes: $0) }
    }
    let keys = TenantKeys(
      root: try key("root_key"), sealedRoot: try row.bytes("sealed_root_key"), signing: try key("signing_key"),
      sealedSigning: try row.bytes("sealed_signing_key"), epoch: try row.integer("key_epoch"),
      keyset: try row.text("keyset"), keysetNotAfter: try row.integer("keyset_not_after"))
    return Tenant(
      id: try row.text("id"), name: try row.text("name"), keys: keys,
      settings: try row.json(Settings.self, "settings"), grace: try row.json(Grace.self, "grace"),
      needsTwoApprovers: try row.integer("four_eyes") != 0,
      policyChangesAt: try row.optionalInteger("policy_changes_at"),
      delegations: try row.json([StoredDelegation].self, "delegations"),
      rootExportedAt: try row.optionalInteger("root_exported_at"), createdAt: try row.integer("created_at"))
  }
}
