internal import CofferSystem

/// One change of a company's state: what it does to the store, what the audit will say, and whether the policy is to be
/// signed anew. All of it happens in one transaction, or nothing.
final class Change {
  let transaction: any StoreTransaction
  let tenant: String
  let actor: Actor
  /// Seconds since 1970.
  let now: Int64
  /// Set when what the policy is made of is not as it was.
  var isPolicyChanged = false
  /// The devices that have an order to fetch, with its number.
  var commands: [(device: String, number: Int64)] = []
  /// Devices that have something else to hear: what their next signed status says is not as it was.
  var changedDevices: [String] = []
  /// Devices whose access was withdrawn.
  var removedDevices: [String] = []
  private let ledger: Ledger

  init(_ transaction: any StoreTransaction, tenant: String, actor: Actor, now: Int64) {
    self.transaction = transaction
    self.tenant = tenant
    self.actor = actor
    self.now = now
    ledger = Ledger(tenant: tenant, time: now, transaction: transaction)
  }

  /// Throws a problem when the company has as many of a kind as it may have.
  func demandRoom(for kind: ResourceKind) throws {
    guard try transaction.countResources(kind, tenant: tenant) < kind.maximum else {
      throw HTTPProblem(.conflict, "The company has \(kind.maximum) of these. Remove one first.")
    }
  }

  /// The same for one more app.
  func demandRoomForApp() throws {
    guard try transaction.countApps(tenant: tenant) < AppRecord.maximumCount else {
      throw HTTPProblem(.conflict, "The company has \(AppRecord.maximumCount) apps. Remove one first.")
    }
  }

  /// - Parameters:
  ///   - old: what was changed as it was, and `new` as it is now, both as the API shows it. The audit keeps their digests, by
  ///     which whoever has the one or the other can prove it.
  func record(
    _ action: AuditAction, _ subject: String? = nil, _ details: [String: String] = [:],
    from old: (any Encodable)? = nil, to new: (any Encodable)? = nil
  ) throws {
    try ledger.append(action, by: actor, subject: subject, details: details, from: old, to: new)
  }

  /// The same of a resource: nil is that there is none.
  func record(
    _ action: AuditAction, _ id: String, replacing old: StoredResource?, with new: StoredResource?
  ) throws {
    let kind = (new ?? old)?.kind.rawValue
    try ledger.append(
      action, by: actor, subject: id, details: kind.map { ["kind": $0] } ?? [:], replacing: old, with: new)
  }
}

extension PolicyServer {
  /// Runs `body` in one transaction; signs the policy anew in it if `body` says so; and wakes the company's devices when
  /// all of it is durable.
  func commit<Value: Sendable>(
    _ actor: Actor, in tenant: String, _ body: @Sendable (Change) throws -> Value
  ) async throws -> Value {
    let now = time.now().seconds
    let (value, revision, commands, changed, removed) = try await store.write { transaction in
      let change = Change(transaction, tenant: tenant, actor: actor, now: now)
      let value = try body(change)
      let revision =
        change.isPolicyChanged
        ? try publisher.publish(found(transaction.tenant(id: tenant)), by: actor, in: transaction) : nil
      return (value, revision, change.commands, change.changedDevices, change.removedDevices)
    }
    if let revision {
      log.notice("tenant \(public: tenant): policy revision \(public: revision.number)")
      events.wake(tenant: tenant, revision: revision.number)
    }
    for (device, number) in commands { events.wake(tenant: tenant, device: device, command: number) }
    for device in changed { events.wake(tenant: tenant, device: device) }
    watchers.wake(tenant: tenant)
    for device in removed { events.drop(tenant: tenant, device: device) }
    return value
  }

  /// The same for a caller, who is looked up again in the transaction: the one place where what administrators and their
  /// tokens change meets what was withdrawn from them meanwhile.
  func commit<Value: Sendable>(
    _ caller: Caller, _ body: @Sendable (Change) throws -> Value
  ) async throws -> Value {
    try await commit(caller.actor, in: caller.tenant) { change in
      try caller.demandPresent(in: change.transaction, now: change.now)
      return try body(change)
    }
  }

  /// Lets a device write what it tells of itself, unless it was removed meanwhile.
  func write<Value: Sendable>(
    _ device: Device, _ body: @Sendable (any StoreTransaction) throws -> Value
  ) async throws -> Value {
    try await store.write { transaction in
      guard try transaction.device(tenant: device.tenant, id: device.id) != nil else {
        throw HTTPProblem.unauthorized(tokenGiven: true)
      }
      return try body(transaction)
    }
  }
}
