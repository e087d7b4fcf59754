internal import CofferAPI
internal import CofferCrypto
internal import CofferPolicy
internal import CofferSystem
internal import Foundation

/// Orders: each verified, begun, carried out and answered, and each of these steps durable before the next.
extension LinkWork {
  private static let limit = 4 << 20

  func carryOutOrders(_ enrolment: Enrolment, over connection: Connection, token: String) async throws(ClientError) {
    try await settleInterrupted(enrolment)
    try await sendReceipts(over: connection)
    let answer = try await connection.send(
      "/v1/device/commands", headers: [("authorization", "Bearer \(token)")], expected: [200], limit: Self.limit)
    let orders = try answer.decoded(OrdersResponse.self)
    for text in orders.commands {
      try await consider(text, orders.delegations, enrolment, over: connection, token: token)
      if memory.isWiped { return }
    }
    try await local { [device] in
      var book = try device.orders()
      let before = book
      book.forget(endedBefore: enrolment.lastStatus?.time ?? 0)
      if book != before { try device.keep(book) }
    }
  }

  /// Orders that take something away, where the device cannot do its part: with a full disk, for one, which would keep each
  /// other step from being durable. A wipe needs no memory. A lock is carried out each time until it can be answered.
  func carryOutUrgentOrders(
    _ enrolment: Enrolment, over connection: Connection, token: String
  ) async throws(ClientError) {
    let book = (try? await local { try device.orders() }) ?? OrderBook()
    let answer = try await connection.send(
      "/v1/device/commands", headers: [("authorization", "Bearer \(token)")], expected: [200], limit: Self.limit)
    let orders = try answer.decoded(OrdersResponse.self)
    for text in orders.commands {
      guard case .new(let order)? = try? book.admit(text, for: enrolment, delegations: orders.delegations) else {
        continue
      }
      switch order.kind {
      case .wipe: return try await wipe(order)
      case .lock:
        // A copy that can be read only never answers: unlocked again, it stays so.
        if device.isReadOnly, !memory.note(lock: order.id) { break }
        _ = try? await local { try device.carryOut(order) }
      case .clearPasscode, .refresh, .uploadLog: break
      }
    }
  }

  private func consider(
    _ text: String, _ delegations: [String], _ enrolment: Enrolment, over connection: Connection, token: String
  ) async throws(ClientError) {
    let book = try await local { try device.orders() }
    let admission: OrderBook.Admission
    do throws(PolicyRefusal) {
      admission = try book.admit(text, for: enrolment, delegations: delegations)
    } catch {
      // Whoever gave it is not the company: there is nobody to answer. What was signed with keys that were withdrawn
      // since comes again, signed with the present ones.
      client.log.warning("an order was refused: \(public: error)")
      return tell(.orderRefused(error))
    }
    guard case .new(let order) = admission else { return }
    if order.kind == .wipe { return try await wipe(order) }
    try await local { [device] in
      var book = book
      book.begin(order)
      try device.keep(book)
    }
    let outcome = try await outcome(of: order, over: connection, token: token)
    try await answer(order.id, order.kind, outcome, enrolment)
    try await sendReceipts(over: connection)
  }

  private func outcome(
    of order: DeviceCommand, over connection: Connection, token: String
  ) async throws(ClientError) -> OrderOutcome {
    // It was fetched before the order was.
    if order.kind == .refresh { return .done }
    let outcome = try await local { try device.carryOut(order) }
    guard case .upload(let lines) = outcome else { return outcome }
    _ = try await connection.send(
      "/v1/device/log", .put, headers: Self.headers(token),
      body: PolicyClient.json(LogRequest(lines: lines, sentAt: sendingTime)), expected: [204],
      limit: PolicyClient.Limit.messages)
    return .done
  }

  /// The receipt is made while there is a key to sign it with.
  private func wipe(_ order: DeviceCommand) async throws(ClientError) {
    try await local { [client, device] in
      let receipt = CommandReceipt(
        tenant: order.tenant, device: order.audience, command: order.id, kind: order.kind, outcome: .done,
        time: client.time.now().seconds)
      try device.wipe(receipt: receipt.signed(with: device.deviceKey()))
    }
    memory.isWiped = true
    tell(.order(.wipe, .done))
  }

  /// What a process that has ended had begun. A lock is as good as done: its keys ended with it. A clearing that was taken
  /// is taken.
  private func settleInterrupted(_ enrolment: Enrolment) async throws(ClientError) {
    for (order, kind, clearing) in try await local({ try device.orders().interrupted }) {
      let outcome: OrderOutcome =
        switch kind {
        case .lock, .refresh: .done
        case .clearPasscode where clearing.map { device.hasTaken(clearing: $0) } ?? false: .done
        case .wipe, .clearPasscode, .uploadLog: .failed("The device was interrupted while it carried this out.")
        }
      try await answer(order, kind, outcome, enrolment)
    }
  }

  private func answer(
    _ order: String, _ kind: DeviceCommand.Kind, _ outcome: OrderOutcome, _ enrolment: Enrolment
  ) async throws(ClientError) {
    let (result, reason): (CommandReceipt.Outcome, String?) =
      switch outcome {
      case .done, .upload: (.done, nil)
      case .failed(let reason): (.failed, reason)
      case .refused(let reason): (.refused, reason)
      }
    try await local { [client, device] in
      let receipt = CommandReceipt(
        tenant: enrolment.tenant, device: enrolment.device, command: order, kind: kind, outcome: result,
        time: client.time.now().seconds, reason: reason)
      var book = try device.orders()
      book.answer(order, receipt: try receipt.signed(with: device.deviceKey()))
      try device.keep(book)
    }
    tell(.order(kind, result))
  }

  private func sendReceipts(over connection: Connection) async throws(ClientError) {
    for (order, receipt) in try await local({ try device.orders().undelivered }) {
      do throws(ClientError) {
        try await PolicyClient.send(receipt: receipt, over: connection)
      } catch .unexpectedAnswer(status: 400) {
        // It stays, and keeps neither the others back nor the orders that come.
        client.log.warning("a receipt was not taken; it is sent again with the next connection")
        continue
      }
      try await local { [device] in
        var book = try device.orders()
        book.deliver(order)
        try device.keep(book)
      }
    }
  }
}

extension PolicyClient {
  /// Hands in the receipt of an order, without a token: its signature is the proof. A device that wiped itself has nothing
  /// else left.
  public func send(receipt: String, to server: String, pinnedCertificate: [UInt8]?) async throws(ClientError) {
    let server = try ServerAddress(server)
    let pinned = try PinnedCertificate(optional: pinnedCertificate)
    try await Connection.with(server, pinned: pinned, timeout: timeout) { connection async throws(ClientError) in
      try await Self.send(receipt: receipt, over: connection)
    }
  }

  static func send(receipt: String, over connection: Connection) async throws(ClientError) {
    let answer = try await connection.send(
      "/v1/device/receipts", headers: [("content-type", "application/json")],
      body: json(ReceiptRequest(receipt: receipt)), expected: [204, 400], limit: Limit.messages)
    // The company does not know the order, or has another answer to it: to send it again changes nothing. Anybody else's
    // 400 ends nothing.
    guard answer.status == 204 || answer.problem == Problem.urn(Problem.invalidReceipt) else {
      throw .unexpectedAnswer(status: answer.status)
    }
  }
}
