internal import CofferAPI
internal import CofferPolicy
internal import CofferSystem
internal import HTTPTypes
internal import Hummingbird

/// A company's devices as its administration sees them.
extension PolicyServer {
  struct DeviceView: Encodable {
    let id: String
    let platform: String?
    let enrolledAt: Int64
    let lastSeenAt: Int64?
    let groups: [String]
    /// Those that one of two people asked for, until another does, too.
    let requestedGroups: [String]?
    let report: DeviceReport?
    let reportedAt: Int64?
    /// The company's newest revision; the report says what the device has applied.
    let desiredRevision: Int64
    let pendingCommands: [DeviceCommand.Kind]

    /// Of what can be changed here.
    static func tag(_ id: String, _ groups: [String]) -> EntityTag { EntityTag(of: Response.encoded([id] + groups)) }
  }

  private func view(_ device: Device, in transaction: any StoreTransaction, now: Int64) throws -> DeviceView {
    let state = try transaction.deviceState(tenant: device.tenant, id: device.id) ?? DeviceState()
    let requested = try transaction.resource(.deviceGroups, id: device.id, tenant: device.tenant)
      .map { try $0.decoded(GroupRequest.self) }
    return DeviceView(
      id: device.id, platform: device.platform, enrolledAt: device.enrolledAt, lastSeenAt: state.lastSeenAt,
      groups: state.groups, requestedGroups: requested?.groups, report: state.report, reportedAt: state.reportedAt,
      desiredRevision: try transaction.currentRevisionNumber(tenant: device.tenant) ?? 0,
      pendingCommands: try transaction.pendingCommands(tenant: device.tenant, device: device.id, now: now)
        .map(\.command.kind))
  }

  @Sendable func listDevices(_ call: Call, _ caller: Caller) async throws -> Response {
    let (request, now) = (try PageRequest(call, caller, sealing), time.now().seconds)
    let found = try await store.read { transaction -> [Numbered<DeviceView>] in
      try transaction.devices(tenant: caller.tenant, after: request.after, limit: request.limit + 1)
        .map { (number: $0.number, value: try self.view($0.value, in: transaction, now: now)) }
    }
    return .json(try request.page(of: found) { $0 })
  }

  @Sendable func showDevice(_ call: Call, _ caller: Caller) async throws -> Response {
    let (id, now) = (try call.id(), time.now().seconds)
    let view = try await store.read { transaction in
      try self.view(found(transaction.device(tenant: caller.tenant, id: id)), in: transaction, now: now)
    }
    return .json(view, headers: [.eTag: DeviceView.tag(id, view.groups).description])
  }

  private struct GroupsBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case groups }
    let groups: [String]
  }

  @Sendable func changeDevice(_ call: Call, _ caller: Caller) async throws -> Response {
    let (id, body) = (try call.id(), try call.strict(GroupsBody.self))
    guard Set(body.groups).count == body.groups.count, body.groups.count <= 100 else {
      throw HTTPProblem.invalid("groups", "are at most 100 different ones")
    }
    let view = try await commit(caller) { change in
      let device = try found(change.transaction.device(tenant: caller.tenant, id: id))
      var state = try change.transaction.deviceState(tenant: caller.tenant, id: id) ?? DeviceState()
      try call.requireMatch(DeviceView.tag(id, state.groups))
      for group in body.groups {
        guard PolicyText.isIdentifier(group),
          try change.transaction.resource(.group, id: group, tenant: caller.tenant) != nil
        else { throw HTTPProblem.invalid("groups", "has one that the company does not") }
      }
      let old = state.groups
      guard try GroupRequest.admits(body.groups.sorted(), insteadOf: old, device: id, in: change) else {
        return try self.view(device, in: change.transaction, now: change.now)
      }
      state.groups = body.groups.sorted()
      change.changedDevices.append(id)
      try change.transaction.update(state, tenant: caller.tenant, id: id)
      try change.record(
        .deviceChanged, id, ["groups": state.groups.joined(separator: " ")], from: old, to: state.groups)
      return try self.view(device, in: change.transaction, now: change.now)
    }
    return .json(view, headers: [.eTag: DeviceView.tag(id, view.groups).description])
  }

  /// Withdraws a device's access: its tokens are unknown from now on, and it gets no other. While a wipe waits for it,
  /// that has to be said: a device that cannot sign in fetches no order. So has it when the time of the wipe is over
  /// without an answer: nobody knows that what was to be wiped is gone.
  @Sendable func removeDevice(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    let abandonsWipe = try call.query("abandonWipe") == "true"
    try await commit(caller) { change in
      let transaction = change.transaction
      _ = try found(transaction.device(tenant: caller.tenant, id: id))
      let isWipePending = try transaction.hasUnansweredCommand(.wipe, tenant: caller.tenant, device: id)
      guard !isWipePending || abandonsWipe else {
        throw HTTPProblem(
          .conflict, "A wipe of this device was not answered. Remove it with ?abandonWipe=true to give that up.")
      }
      _ = try transaction.deleteDevice(tenant: caller.tenant, id: id)
      _ = try transaction.deleteResource(.deviceGroups, id: id, tenant: caller.tenant)
      change.removedDevices.append(id)
      try change.record(.deviceRemoved, id, isWipePending ? ["abandoned": "wipe"] : [:])
    }
    log.notice("tenant \(public: caller.tenant): device \(public: id) removed")
    return .plain(.noContent)
  }

  private struct DecisionsView: Encodable {
    struct Gap: Encodable {
      let from: Int64
      let through: Int64
    }

    struct Entry: Encodable {
      let number: Int64
      let entry: String
      let receivedAt: Int64
    }

    let items: [Entry]
    /// Numbers that never came, up to the newest that did.
    let gaps: [Gap]
    let next: String?
  }

  @Sendable func listDecisions(_ call: Call, _ caller: Caller) async throws -> Response {
    let (id, request) = (try call.id(), try PageRequest(call, caller, sealing))
    let (decisions, numbers) = try await store.read { transaction in
      _ = try found(transaction.device(tenant: caller.tenant, id: id))
      let decisions = try transaction.decisions(device: id, after: request.after, limit: request.limit + 1)
      return (decisions, try transaction.decisionGaps(device: id))
    }
    let page = try request.page(of: decisions.map { (number: $0.number, value: $0) }) {
      DecisionsView.Entry(number: $0.number, entry: $0.entry, receivedAt: $0.receivedAt)
    }
    return .json(
      DecisionsView(
        items: page.items, gaps: numbers.map { .init(from: $0.lowerBound, through: $0.upperBound) }, next: page.next))
  }
}
