internal import CofferAPI
internal import CofferPolicy
internal import CofferSystem
internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// What an enrolled device tells.
extension PolicyServer {
  @Sendable func takeReport(_ call: Call, _ device: Device) async throws -> Response {
    let report = try call.json(DeviceReport.self)
    try report.check()
    let now = time.now().seconds
    try await write(device) { transaction in
      var state = try found(transaction.deviceState(tenant: device.tenant, id: device.id))
      try Delivery.demandNewer(report.sentAt, than: state.report?.sentAt, keptAt: state.reportedAt, now: now)
      state.report = report
      state.reportedAt = now
      state.lastSeenAt = now
      try transaction.update(state, tenant: device.tenant, id: device.id)
    }
    watchers.wake(tenant: device.tenant)
    return .plain(.noContent)
  }

  private struct DecisionsBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case entries }

    struct Entry: Decodable {
      let number: Int64
      /// What was decided, as the device wrote it.
      let entry: String
    }

    let entries: [Entry]
  }

  private struct DecisionsReceipt: Encodable {
    /// The highest number up to which nothing is missing.
    let completeThrough: Int64
  }

  /// The highest number that is taken of a device; what it decided after that stays with it.
  static let maximumDecisions: Int64 = 100_000

  /// Takes decisions in any order and more than once. One that came before stays as it came.
  @Sendable func takeDecisions(_ call: Call, _ device: Device) async throws -> Response {
    let entries = try call.strict(DecisionsBody.self).entries
    guard (1...500).contains(entries.count),
      entries.allSatisfy({ (1...Self.maximumDecisions).contains($0.number) && $0.entry.utf8.count <= 2048 })
    else {
      throw HTTPProblem.invalid("entries", "are 1 to 500, with numbers from 1 and texts of at most 2048 bytes")
    }
    let now = time.now().seconds
    let complete = try await write(device) { transaction in
      for entry in entries {
        try transaction.insert(
          DeviceDecision(number: entry.number, entry: entry.entry, receivedAt: now), device: device.id)
      }
      let complete = try transaction.completeDecisions(device: device.id)
      try transaction.noteCompleteDecisions(complete, device: device.id)
      return complete
    }
    return .json(DecisionsReceipt(completeThrough: complete))
  }
}

/// Codes by which devices join.
extension PolicyServer {
  private struct EnrollmentBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case expiresIn }
    /// Seconds; a day unless given.
    let expiresIn: Int64?
  }

  private struct EnrollmentView: Encodable {
    let id: String
    let createdAt: Int64
    let expiresAt: Int64
    /// Only in the answer that makes it.
    var code: String?
  }

  @Sendable func createEnrollment(_ call: Call, _ caller: Caller) async throws -> Response {
    let lifetime = try call.strict(EnrollmentBody.self).expiresIn ?? 86_400
    guard Administration.enrollmentLifetimes.contains(lifetime) else {
      throw HTTPProblem.invalid("expiresIn", "is from one minute to 30 days, in seconds")
    }
    return try await create(call, caller) { change in
      let tenant = try found(change.transaction.tenant(id: caller.tenant))
      let (code, enrollment) = try administration.createEnrollment(
        for: tenant, lifetime: lifetime, by: caller.actor, in: change.transaction)
      return KeptAnswer(
        EnrollmentView(
          id: enrollment.id, createdAt: enrollment.createdAt, expiresAt: enrollment.expiresAt, code: code.text))
    }
  }

  @Sendable func listEnrollments(_ call: Call, _ caller: Caller) async throws -> Response {
    let (request, now) = (try PageRequest(call, caller, sealing), time.now().seconds)
    let found = try await store.read {
      try $0.unusedEnrollments(tenant: caller.tenant, now: now, after: request.after, limit: request.limit + 1)
    }
    return .json(
      try request.page(of: found) { EnrollmentView(id: $0.id, createdAt: $0.createdAt, expiresAt: $0.expiresAt) })
  }

  @Sendable func revokeEnrollment(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    try await commit(caller) { change in
      guard try change.transaction.deleteUnusedEnrollment(tenant: caller.tenant, id: id) else {
        throw HTTPProblem.notFound
      }
      try change.record(.enrollmentRevoked, id)
    }
    return .plain(.noContent)
  }
}
