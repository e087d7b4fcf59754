internal import CofferPolicy
internal import CofferSystem
internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// Bounds of orders to devices.
enum DeviceCommands {
  /// How long an order waits for its device, in seconds, unless said otherwise.
  static let lifetime: Int64 = 30 * 86_400
  static let lifetimes: ClosedRange<Int64> = 60...90 * 86_400
  /// Of one that clears a passcode: whoever lost theirs waits for it, and nothing that lets somebody in lies around.
  static let clearingLifetime: Int64 = 86_400
  /// For one device, of each kind: no number of small orders keeps a wipe from it.
  static let maximumPending = 50
}

/// Orders to devices: signed, queued, answered by a signed receipt, and kept.
extension PolicyServer {
  private struct CommandBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case kind, expiresIn, clearing }
    let kind: DeviceCommand.Kind
    /// Seconds.
    let expiresIn: Int64?
    /// What the holder of the escrow key made; opaque here.
    let clearing: String?
  }

  private struct CommandView: Encodable {
    let id: String
    let device: String
    let kind: DeviceCommand.Kind
    /// `expired` when its time was over before the device answered.
    let state: String
    let createdBy: String
    let createdAt: Int64
    let expiresAt: Int64
    let answeredAt: Int64?
    /// The device's signed answer, for who wants to verify it.
    let receipt: String?
    /// Why the device refused it or failed, in its own words.
    let reason: String?

    init(_ record: CommandRecord, now: Int64) {
      id = record.command.id
      device = record.command.audience
      kind = record.command.kind
      let isOver = record.state == .pending && now > record.command.notAfter
      state = isOver ? "expired" : record.state.rawValue
      createdBy = record.createdBy
      createdAt = record.command.issuedAt
      expiresAt = record.command.notAfter
      answeredAt = record.answeredAt
      receipt = record.receipt
      reason = record.receipt.flatMap(ReceiptClaims.init)?.reason
    }
  }

  /// What a receipt says, which was verified when it came.
  struct ReceiptClaims: Decodable {
    let reason: String?
    /// By the device's clock, in seconds since 1970.
    let time: Int64?

    init?(_ receipt: String) {
      let parts = receipt.split(separator: ".")
      guard parts.count == 3, let payload = Base64URL.decode(parts[1]),
        let claims = try? JSONDecoder().decode(Self.self, from: Data(payload))
      else { return nil }
      self = claims
    }
  }

  @Sendable func listCommands(_ call: Call, _ caller: Caller) async throws -> Response {
    let (id, request, now) = (try call.id(), try PageRequest(call, caller, sealing), time.now().seconds)
    let found = try await store.read { transaction in
      // The history of a device that is gone is there, and that of one that never was is not.
      let commands = try transaction.commands(
        tenant: caller.tenant, device: id, after: request.after, limit: request.limit + 1)
      if commands.isEmpty { _ = try self.found(transaction.device(tenant: caller.tenant, id: id)) }
      return commands
    }
    return .json(try request.page(of: found) { CommandView($0, now: now) })
  }

  @Sendable func createCommand(_ call: Call, _ caller: Caller) async throws -> Response {
    let (device, body) = (try call.id(), try call.strict(CommandBody.self))
    let isClearing = body.kind == .clearPasscode
    let lifetime = body.expiresIn ?? (isClearing ? DeviceCommands.clearingLifetime : DeviceCommands.lifetime)
    guard isClearing == (body.clearing != nil), body.clearing.map(DeviceCommand.isClearing) ?? true else {
      throw HTTPProblem.invalid("clearing", "is what coffer escrow clear printed, for clearPasscode and nothing else")
    }
    guard DeviceCommands.lifetimes.contains(lifetime) else {
      throw HTTPProblem.invalid("expiresIn", "is from one minute to 90 days, in seconds")
    }
    let id = UUID().uuidString.lowercased()
    return try await create(call, caller) { change in
      let transaction = change.transaction
      var tenant = try found(transaction.tenant(id: caller.tenant))
      _ = try found(transaction.device(tenant: caller.tenant, id: device))
      let pending = try transaction.pendingCommands(tenant: caller.tenant, device: device, now: change.now)
      guard pending.count(where: { $0.command.kind == body.kind }) < DeviceCommands.maximumPending else {
        throw HTTPProblem(.conflict, "Too many orders of this kind wait for this device.")
      }
      if body.kind == .wipe, publisher.delegation(.wipe, of: tenant) == nil {
        tenant = try publisher.delegating(.wipe, key: nil, for: tenant).0
        try transaction.update(tenant)
        try publisher.signOrdersAnew(of: tenant, in: change)
        try change.record(.keyDelegated, nil, ["use": Delegation.Use.wipe.rawValue])
      }
      let command = DeviceCommand(
        tenant: caller.tenant, audience: device, id: id, kind: body.kind, issuedAt: change.now,
        notAfter: change.now + lifetime, clearing: body.clearing)
      let record = CommandRecord(
        command: command, document: try publisher.signed(command, of: tenant), createdBy: caller.actor.description)
      change.commands.append((device, try transaction.insert(record)))
      try change.record(.commandQueued, device, ["command": id, "kind": body.kind.rawValue], to: command)
      return KeptAnswer(CommandView(record, now: change.now), location: "/v1/devices/\(device)/commands/\(id)")
    }
  }

  /// Takes an order back that nobody answered. A device that has fetched it may carry it out all the same.
  @Sendable func cancelCommand(_ call: Call, _ caller: Caller) async throws -> Response {
    let device = try call.id()
    guard let id = call.parameters.get("command"), PolicyText.isIdentifier(id) else { throw HTTPProblem.notFound }
    try await commit(caller) { change in
      guard var record = try change.transaction.command(tenant: caller.tenant, id: id),
        record.command.audience == device
      else { throw HTTPProblem.notFound }
      guard record.state == .pending else { throw HTTPProblem(.conflict, "It is \(record.state.rawValue).") }
      record.state = .cancelled
      try change.transaction.update(record)
      try change.record(.commandCancelled, device, ["command": id, "kind": record.command.kind.rawValue])
    }
    return .plain(.noContent)
  }
}

/// The device's side of it.
extension PolicyServer {
  private struct Orders: Encodable {
    /// Signed orders, the oldest first.
    let commands: [String]
    /// What lets the key that signs wipes do so.
    let delegations: [String]
    let keyset: String
  }

  @Sendable func showCommands(_ call: Call, _ device: Device) async throws -> Response {
    let now = time.now().seconds
    let orders = try await store.read { transaction in
      let tenant = try found(transaction.tenant(id: device.tenant))
      return Orders(
        commands: try transaction.pendingCommands(tenant: device.tenant, device: device.id, now: now).map(\.document),
        delegations: tenant.delegations.map(\.document), keyset: tenant.keys.keyset)
    }
    return .json(orders)
  }

  private struct ReceiptBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case receipt }
    let receipt: String
  }

  /// Takes a signed receipt. The signature is the proof, and no token is needed: a device that wiped itself has nothing
  /// left but what it signed before.
  @Sendable func takeReceipt(_ call: Call) async throws -> Response {
    let text = try call.strict(ReceiptBody.self).receipt
    let refused = HTTPProblem(.invalidReceipt, "It is of no order of this device, or not signed by the device's key.")
    // Nobody has shown who they are yet: what they send is looked at where nobody waits for it, and only what a device signed
    // changes anything.
    guard let claimed = try? CommandReceipt.claimed(text),
      let (device, order) = try await store.read({ transaction -> (Device, CommandRecord)? in
        guard let device = try transaction.device(id: claimed.device),
          let order = try transaction.command(tenant: device.tenant, id: claimed.command)
        else { return nil }
        return (device, order)
      }), let receipt = try? CommandReceipt(verifying: text, of: order.command, key: device.key),
      receipt.device == device.id
    else { throw refused }
    // Answered is answered: a repetition changes nothing, and neither does another outcome.
    guard order.receipt == nil else { return .plain(.noContent) }
    try await commit(.device(device.id), in: device.tenant) { change in
      var record = try found(change.transaction.command(tenant: device.tenant, id: order.command.id))
      guard record.receipt == nil else { return }
      record.state =
        switch receipt.outcome {
        case .done: .done
        case .failed: .failed
        case .refused: .refused
        }
      record.receipt = text
      record.answeredAt = change.now
      try change.transaction.update(record)
      try change.record(
        .commandAnswered, device.id,
        ["command": receipt.command, "kind": receipt.kind.rawValue, "outcome": receipt.outcome.rawValue])
    }
    return .plain(.noContent)
  }
}
