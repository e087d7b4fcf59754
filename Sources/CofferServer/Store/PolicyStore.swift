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

  /// A number that grows with every commit, of whatever process, before that commit is reported to whoever made it. Takes
  /// microseconds, and waits for no writer.
  ///
  /// Throws ``StoreError``.
  func version() throws -> Int64
}

/// What a store can do inside a transaction, by table.
///
/// Rows are read and changed *by tenant*: one of another company is absent for every caller. Only what establishes who
/// is calling, a hash or the id that a device says it has, is looked for in all companies.
///
/// Lists are read in pages: up to `limit` rows behind the one with the number `after`, in the order of their creation.
public protocol StoreTransaction: TenantTable, AccountTable, SessionTable, AppTable, ResourceTable, DeviceTable,
  CommandTable, DecisionTable, DeviceLogTable, RevisionTable, AuditTable, RequestTable
{}

/// Companies.
public protocol TenantTable {
  func tenant(id: String) throws -> Tenant?
  func tenant(name: String) throws -> Tenant?
  /// Ids of those whose ``Tenant/policyChangesAt`` has come by `now`.
  func tenants(policyChangesBy now: Int64) throws -> [String]
  /// `false` when the name is taken.
  func insert(_ tenant: Tenant) throws -> Bool
  /// Writes the settings and keys of a tenant that exists.
  func update(_ tenant: Tenant) throws
}

/// Administrators, the links by which people become one, and API tokens.
public protocol AccountTable {
  /// `false` when the company has an administrator with this address.
  func insert(_ administrator: Administrator) throws -> Bool
  func administrator(tenant: String, email: String) throws -> Administrator?
  func administrator(tenant: String, id: String) throws -> Administrator?
  func administrators(tenant: String, after: Int64, limit: Int) throws -> [Numbered<Administrator>]
  func countAdministrators(tenant: String, role: Role) throws -> Int
  /// Of any company.
  func hasAdministrators() throws -> Bool
  /// Writes role, password and second factor of an administrator who exists.
  func update(_ administrator: Administrator) throws
  /// Removes the administrator with all sessions.
  func deleteAdministrator(tenant: String, id: String) throws

  /// Adds an invitation, and forgets those that expired by `now`.
  func insert(_ invitation: Invitation, hash: [UInt8], now: Int64) throws
  /// The invitation with this hash, expired or not.
  func invitation(hash: [UInt8]) throws -> Invitation?
  /// The same by id.
  func invitation(tenant: String, id: String) throws -> Invitation?
  /// Those that are not expired by `now`.
  func invitations(tenant: String, now: Int64, after: Int64, limit: Int) throws -> [Numbered<Invitation>]
  /// Those that this ``Actor`` made, expired or not.
  func invitations(tenant: String, createdBy: String) throws -> [Invitation]
  /// `false` when there is none. Without a tenant, a set-up link.
  func deleteInvitation(tenant: String?, id: String) throws -> Bool
  /// Forgets all invitations without a tenant.
  func deleteSetUpLinks() throws

  func insert(_ token: APIToken, hash: [UInt8]) throws
  /// The token with this hash, expired or not.
  func apiToken(hash: [UInt8]) throws -> APIToken?
  /// The same by id.
  func apiToken(tenant: String, id: String) throws -> APIToken?
  func apiTokens(tenant: String, after: Int64, limit: Int) throws -> [Numbered<APIToken>]
  /// Those that this ``Actor`` made, expired or not.
  func apiTokens(tenant: String, createdBy: String) throws -> [APIToken]
  /// `false` when there is none.
  func deleteAPIToken(tenant: String, id: String) throws -> Bool
}

/// Who is signed in.
public protocol SessionTable {
  /// Adds a session, and forgets the administrator's sessions that are over by `now`, or that began long after it.
  func insert(_ session: Session, hash: [UInt8], now: Int64) throws
  /// The session with this hash, over or not, and whose it is.
  func session(hash: [UInt8]) throws -> (Session, Administrator)?
  /// The session of this id, over or not.
  func session(id: String) throws -> Session?
  func noteSession(id: String, seenAt: Int64) throws
  func deleteSession(id: String) throws
  func deleteSessions(administrator: String) throws
}

/// Requests that made something, for repetitions of them.
public protocol RequestTable {
  /// The request with this key that is not expired by `now`.
  func keptRequest(key: [UInt8], tenant: String, now: Int64) throws -> KeptRequest?
  /// Adds a request, and forgets all that expired by `now`.
  func insert(_ request: KeptRequest, now: Int64) throws
}

/// The companies' audits. Nothing here changes or removes an entry.
public protocol AuditTable {
  func lastAuditRecord(tenant: String) throws -> AuditRecord?
  /// Throws when the company has an entry of this number.
  func append(_ record: AuditRecord, tenant: String) throws
  func auditRecords(tenant: String, after: Int64, limit: Int) throws -> [AuditRecord]
}

/// Apps. Those that are approved are the resource `/items`; the others are absent there.
public protocol AppTable {
  /// Apps of every state.
  func appRecord(tenant: String, id: String) throws -> AppRecord?
  func appRecord(tenant: String, identity: AppIdentity) throws -> AppRecord?
  func appRecords(tenant: String, after: Int64, limit: Int) throws -> [Numbered<AppRecord>]
  /// `false` when the company has an app of this bundle id and team.
  func insert(_ app: AppRecord, tenant: String) throws -> Bool
  /// Of every state.
  func countApps(tenant: String) throws -> Int64
  func countApps(tenant: String, _ state: AppRecord.State) throws -> Int64
  /// The first ones in the order of their creation.
  func apps(tenant: String, _ state: AppRecord.State, limit: Int) throws -> [AppRecord]
  /// Approved ones that end before `moment`, those that end first before the others.
  func appsEnding(tenant: String, before moment: Int64, limit: Int) throws -> [AppRecord]
  /// Replaces the app with the same id. `false` when another one has its bundle id and team, or there is none.
  func update(_ app: AppRecord, tenant: String) throws -> Bool
  /// The approved ones, in the order of their creation.
  func appsInForce(tenant: String) throws -> [AppRecord]
  /// Approved ones whose time was over by `now`.
  func apps(tenant: String, expiredBy now: Int64) throws -> [AppRecord]
  /// When the first of the approved ones ends.
  func nextAppExpiry(tenant: String) throws -> Int64?

  /// All approved ones of a company, in the order of their creation.
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

/// What companies write: rules, classifications, file types, groups and drafts.
public protocol ResourceTable {
  func resource(_ kind: ResourceKind, id: String, tenant: String) throws -> StoredResource?
  /// All of a kind, in the order of their creation.
  func resources(_ kind: ResourceKind, tenant: String) throws -> [StoredResource]
  func resources(_ kind: ResourceKind, tenant: String, after: Int64, limit: Int) throws -> [Numbered<StoredResource>]
  func countResources(_ kind: ResourceKind, tenant: String) throws -> Int64
  /// `false` when there is one with this id.
  func insert(_ resource: StoredResource, tenant: String) throws -> Bool
  /// `false` when there is none.
  func update(_ resource: StoredResource, tenant: String) throws -> Bool
  /// `false` when there is none.
  func deleteResource(_ kind: ResourceKind, id: String, tenant: String) throws -> Bool
  func deleteResources(_ kind: ResourceKind, tenant: String) throws
}

/// Enrolment codes, devices and what they sign in with.
public protocol DeviceTable {
  func insert(_ enrollment: Enrollment, hash: [UInt8]) throws
  /// Those that are not expired by `now`.
  func unusedEnrollments(
    tenant: String, now: Int64, after: Int64, limit: Int
  ) throws -> [Numbered<Enrollment>]
  /// Those that this ``Actor`` made, expired or not.
  func unusedEnrollments(tenant: String, createdBy: String) throws -> [Enrollment]
  /// `false` when there is none.
  func deleteUnusedEnrollment(tenant: String, id: String) throws -> Bool
  /// The unused code with this hash, expired or not.
  func unusedEnrollment(hash: [UInt8]) throws -> Enrollment?
  /// Marks the code as used and adds the device that used it.
  func redeem(_ enrollment: Enrollment, for device: Device) throws
  /// A device of whichever company.
  func device(id: String) throws -> Device?
  func devices(tenant: String) throws -> [Device]
  func devices(tenant: String, after: Int64, limit: Int) throws -> [Numbered<Device>]
  func device(tenant: String, id: String) throws -> Device?
  func deviceState(tenant: String, id: String) throws -> DeviceState?
  /// Writes the state of a device that exists.
  func update(_ state: DeviceState, tenant: String, id: String) throws
  func noteDevice(id: String, seenAt: Int64) throws
  /// Removes the device with its tokens. `false` when there is none.
  func deleteDevice(tenant: String, id: String) throws -> Bool
  /// Notes that a device used an assertion's id. `false` when it has used it before. Forgets ids that expired by `now`, and
  /// takes none any more that ends when one of those did: a clock may be set back.
  func noteAssertion(device: String, id: String, expiresAt: Int64, now: Int64) throws -> Bool
  /// Adds a device token, and forgets the device's tokens that expired by `now`.
  func insertDeviceToken(hash: [UInt8], device: String, expiresAt: Int64, now: Int64) throws
  /// The device whose token has this hash, expired or not, and when the token ends.
  func device(tokenHash: [UInt8]) throws -> (device: Device, expiresAt: Int64)?
}

/// What devices decided, as they tell it.
public protocol DecisionTable {
  /// Adds a decision, unless the device has sent one of this number.
  func insert(_ decision: DeviceDecision, device: String) throws
  func decisions(device: String, after: Int64, limit: Int) throws -> [DeviceDecision]
  /// The newest first: those before the number `before`.
  func decisions(device: String, before: Int64, limit: Int) throws -> [DeviceDecision]
  /// Runs of numbers that never came, up to the newest that did; at most a hundred.
  func decisionGaps(device: String) throws -> [ClosedRange<Int64>]
  /// The highest number up to which nothing is missing; 0 when the first is.
  func completeDecisions(device: String) throws -> Int64
  /// Keeps what ``completeDecisions(device:)`` found, so that the next time looks from there on.
  func noteCompleteDecisions(_ complete: Int64, device: String) throws
}

/// Orders to devices, with their answers. They outlive the device's record.
public protocol CommandTable {
  /// Adds a command and returns its number, which counts up for each device.
  func insert(_ command: CommandRecord) throws -> Int64
  /// Writes state and receipt of a command that exists.
  func update(_ command: CommandRecord) throws
  func command(tenant: String, id: String) throws -> CommandRecord?
  func commands(tenant: String, device: String, after: Int64, limit: Int) throws -> [Numbered<CommandRecord>]
  /// The newest first: those before the number `before`, by the count of ``insert(_:)``.
  func commands(tenant: String, device: String, before: Int64, limit: Int) throws -> [Numbered<CommandRecord>]
  /// Those that wait to be carried out.
  func pendingCommands(tenant: String, device: String, now: Int64) throws -> [CommandRecord]
  /// Whether the device has been ordered this without an answer, also when the order's time is over by now.
  func hasUnansweredCommand(_ kind: DeviceCommand.Kind, tenant: String, device: String) throws -> Bool
  /// Whether the device has signed that it carried out an order of this kind.
  func hasDoneCommand(_ kind: DeviceCommand.Kind, tenant: String, device: String) throws -> Bool
  /// Those that wait, of all devices of a company.
  func pendingCommands(tenant: String, now: Int64) throws -> [CommandRecord]
  /// Writes another signed form of a command that exists, and returns its new number.
  func replaceDocument(of command: DeviceCommand, by document: String) throws -> Int64
  /// 0 when there was none.
  func lastCommandNumber(tenant: String, device: String) throws -> Int64
}

/// The signed states of policies.
public protocol RevisionTable {
  func revision(tenant: String, number: Int64) throws -> Revision?
  /// The newest first: those before the number `before`.
  func revisions(tenant: String, before: Int64, limit: Int) throws -> [Revision]
  /// The same without their bundles, each of which may have megabytes.
  func revisionHeads(tenant: String, before: Int64, limit: Int) throws -> [RevisionHead]
  /// The newest of a company.
  func currentRevision(tenant: String) throws -> Revision?
  /// The same without reading what it says, which may be 4 MiB.
  func currentRevisionNumber(tenant: String) throws -> Int64?
  /// Throws when the company has a revision of this number.
  func insert(_ revision: Revision) throws
}
