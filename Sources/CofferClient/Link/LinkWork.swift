internal import CofferAPI
internal import CofferCrypto
internal import CofferPolicy
internal import CofferSystem
internal import Foundation
internal import Synchronization

/// What a link does each time it is woken: the policy and its confirmation, then orders, then what the company is to know.
struct LinkWork: Sendable {
  let device: any LinkedDevice
  let client: PolicyClient
  let memory: LinkMemory
  let tell: @Sendable (LinkEvent) -> Void

  func perform(over connection: Connection, token: String) async throws(ClientError) {
    if memory.isWiped { return }
    let held = try await local { try device.enrolment() }
    let enrolment = try await client.refresh(held, token: token, over: connection)
    guard enrolment.lastStatus != nil else {
      try await take(enrolment, insteadOf: held)
      throw .unreachable
    }
    if device.isReadOnly {
      return try await hearWithoutMemory(enrolment, insteadOf: held, over: connection, token: token)
    }
    do throws(ClientError) {
      try await take(enrolment, insteadOf: held)
      try await report(enrolment, over: connection, token: token)
      try await carryOutOrders(enrolment, over: connection, token: token)
    } catch {
      if !memory.isWiped { try? await carryOutUrgentOrders(enrolment, over: connection, token: token) }
      throw error
    }
    if memory.isWiped { throw .unreachable }
    try await sendDecisions(over: connection, token: token)
    memory.noteAnswer()
  }

  /// For a device that can store nothing: what is signed holds in this process, and no decision, report or receipt leaves it.
  private func hearWithoutMemory(
    _ enrolment: Enrolment, insteadOf held: Enrolment, over connection: Connection, token: String
  ) async throws(ClientError) {
    try? await take(enrolment, insteadOf: held)
    try await carryOutUrgentOrders(enrolment, over: connection, token: token)
    if memory.isWiped { throw .unreachable }
    memory.noteAnswer()
  }

  /// Runs what may wait for a disk, or for programs that use a mount, on a thread of its own. Throws `deviceFailed` also where
  /// there is none.
  func local<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws(ClientError) -> Value {
    // Handed over under a lock, which ThreadSanitizer sees, and not the concurrency runtime.
    let outcome = Outcome<Value>()
    await withCheckedContinuation { continuation in
      do {
        try NewThread.start {
          let result = Result { try body() }
          outcome.result.withLock { $0 = result }
          continuation.resume()
        }
      } catch {
        outcome.result.withLock { $0 = .failure(error) }
        continuation.resume()
      }
    }
    do {
      return try outcome.result.withLock { $0! }.get()
    } catch {
      client.log.error("the device could not do its part: \(error: error)")
      throw .deviceFailed
    }
  }

  private final class Outcome<Value: Sendable>: Sendable {
    let result = Mutex<Result<Value, any Error>?>(nil)
  }

  private func take(_ enrolment: Enrolment, insteadOf held: Enrolment) async throws(ClientError) {
    try await local { try device.take(enrolment) }
    let isNew = enrolment.bundle.digest != held.bundle.digest
    if isNew { tell(.applied(revision: enrolment.policy.revision)) }
    if enrolment.lastStatus != nil { tell(.confirmed(revision: enrolment.policy.revision)) }
    if let fault = enrolment.auditFault, held.auditFault != fault { tell(.auditFault(fault)) }
  }

  /// In milliseconds since 1970.
  var sendingTime: Int64 {
    let now = client.time.now()
    return now.seconds * 1000 + Int64(now.nanoseconds / 1_000_000)
  }

  /// After each policy that was applied, and once for each process.
  private func report(_ enrolment: Enrolment, over connection: Connection, token: String) async throws(ClientError) {
    let report = try await local { try device.report(enrolment) }
    if report == memory.sentReport { return }
    var sent = report
    sent.sentAt = sendingTime
    _ = try await connection.send(
      "/v1/device/report", .put, headers: Self.headers(token), body: PolicyClient.json(sent), expected: [204],
      limit: PolicyClient.Limit.messages)
    memory.sentReport = report
  }

  private func sendDecisions(over connection: Connection, token: String) async throws(ClientError) {
    while !memory.isSpentOfDecisions, case let entries = try await local({ try device.undeliveredDecisions() }),
      !entries.isEmpty
    {
      let answer = try await connection.send(
        "/v1/device/decisions", headers: Self.headers(token),
        body: PolicyClient.json(DecisionsRequest(entries: entries)), expected: [200, 422],
        limit: PolicyClient.Limit.messages)
      // Anybody else's 422, a proxy's, ends nothing.
      if answer.status == 422, answer.problem == Problem.urn(Problem.invalidFields) {
        client.log.warning("the company takes no more decisions of this device")
        memory.isSpentOfDecisions = true
        return
      }
      guard answer.status == 200 else { throw .unexpectedAnswer(status: answer.status) }
      let complete = try answer.decoded(DecisionsResponse.self).completeThrough
      // A gap below stays one: what is not here any more does not come by waiting.
      let last = entries.map(\.number).max() ?? 0
      try await local { try device.noteDecisions(deliveredThrough: last, companyHas: complete) }
    }
  }

  static func headers(_ token: String) -> [(String, String)] {
    [("authorization", "Bearer \(token)"), ("content-type", "application/json")]
  }
}
