public import CofferPolicy

/// Where the policy server keeps everything. One implementation for each database.
public protocol PolicyStore: Sendable {
  /// Runs `body` on one consistent state. Changes are refused.
  ///
  /// Throws what `body` throws, and ``StoreError``.
  func read<Value: Sendable>(_ body: @Sendable (any StoreTransaction) throws -> Value) async throws -> Value

  /// Runs `body` alone, and makes what it changed durable when it returns; undoes all of it when it throws.
  ///
  /// Throws what `body` throws, and ``StoreError``.
  func write<Value: Sendable>(_ body: @Sendable (any StoreTransaction) throws -> Value) async throws -> Value
}

/// What a store can do inside a transaction, by table.
///
/// Rows are read and changed *by tenant*: one of another company is absent for every caller. Only what establishes who
/// is calling, a hash or a key's id, is looked for in all companies.
public protocol StoreTransaction: TenantTable, AccountTable, AppTable, DeviceTable, RevisionTable {}

/// Companies.
public protocol TenantTable {
  func tenant(id: String) throws -> Tenant?
  func tenant(name: String) throws -> Tenant?
  /// `false` when the name is taken.
  func insert(_ tenant: Tenant) throws -> Bool
  /// Writes the settings and keys of a tenant that exists.
  func update(_ tenant: Tenant) throws
}

/// Administrators and API tokens.
public protocol AccountTable {
  /// `false` when the company has an administrator with this address.
  func insert(_ administrator: Administrator) throws -> Bool
  func administrator(tenant: String, email: String) throws -> Administrator?
  func insert(_ token: APIToken, hash: [UInt8]) throws
  /// The token with this hash, expired or not.
  func apiToken(hash: [UInt8]) throws -> APIToken?
}

/// Approved apps: the resource `/items`.
public protocol AppTable {
  /// All of a company's, in the order of their creation.
  func apps(tenant: String) throws -> [AppApproval]
  func app(tenant: String, id: String) throws -> AppApproval?
  func app(tenant: String, identity: AppIdentity) throws -> AppApproval?
  /// `false` when the company has approved this bundle id of this team already.
  func insert(_ app: AppApproval, tenant: String) throws -> Bool
  /// Replaces the app with the same id. `false` when another one has its bundle id and team, or there is none.
  func update(_ app: AppApproval, tenant: String) throws -> Bool
  /// `false` when there is none.
  func deleteApp(tenant: String, id: String) throws -> Bool
}

/// Enrolment codes, devices and what they sign in with.
public protocol DeviceTable {
  func insert(_ enrollment: Enrollment, hash: [UInt8]) throws
  /// The unused code with this hash, expired or not.
  func unusedEnrollment(hash: [UInt8]) throws -> Enrollment?
  /// Marks the code as used and adds the device that used it.
  func redeem(_ enrollment: Enrollment, for device: Device) throws
  /// Devices by the id of their key. One key may stand for a device of several companies.
  func devices(keyID: String) throws -> [Device]
  func devices(tenant: String) throws -> [Device]
  /// Removes the device with its tokens. `false` when there is none.
  func deleteDevice(tenant: String, id: String) throws -> Bool
  /// Notes that a device used an assertion's id. `false` when it has used it before. Forgets ids that expired by `now`.
  func noteAssertion(device: String, id: String, expiresAt: Int64, now: Int64) throws -> Bool
  /// Adds a device token, and forgets the device's tokens that expired by `now`.
  func insertDeviceToken(hash: [UInt8], device: String, expiresAt: Int64, now: Int64) throws
  /// The device whose token has this hash and is not expired by `now`.
  func device(tokenHash: [UInt8], now: Int64) throws -> Device?
}

/// The signed states of policies.
public protocol RevisionTable {
  /// The newest of a company.
  func currentRevision(tenant: String) throws -> Revision?
  /// Throws when the company has a revision of this number.
  func insert(_ revision: Revision) throws
}
