internal import CofferPolicy
internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// Apps with their approvals: asked for, approved by one person or by two, revoked. What is approved is in the policy of
/// the same transaction.
extension PolicyServer {
  @Sendable func listApps(_ call: Call, _ caller: Caller) async throws -> Response {
    let request = try PageRequest(call, caller, sealing)
    let found = try await store.read {
      try $0.appRecords(tenant: caller.tenant, after: request.after, limit: request.limit + 1)
    }
    return .json(try request.page(of: found, AppView.init))
  }

  @Sendable func showApp(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    return Self.response(try found(await store.read { try $0.appRecord(tenant: caller.tenant, id: id) }))
  }

  /// Asks for an app; an approval is a step of its own.
  @Sendable func requestApp(_ call: Call, _ caller: Caller) async throws -> Response {
    let body = try call.strict(AppBody.self)
    let id = UUID().uuidString.lowercased()
    return try await create(call, caller) { change in
      let app = try body.record(id: id, requester: caller.actor, now: change.now)
      try change.demandRoomForApp()
      guard try change.transaction.insert(app, tenant: caller.tenant) else { throw Self.appExists }
      let view = AppView(app)
      try change.record(.appRequested, id, Self.details(app), to: view)
      return KeptAnswer(view, location: "/v1/apps/\(id)", tag: view.tag)
    }
  }

  /// Replaces what is asked for. An approval was of what it was, so that a change is to be approved anew, and what is in
  /// force ends; whoever may approve does both by asking for `approve` next.
  @Sendable func changeApp(_ call: Call, _ caller: Caller) async throws -> Response {
    let (id, body) = (try call.id(), try call.strict(AppBody.self))
    return try await changeApp(call, caller, id: id) { old, change in
      var new = try body.record(id: id, requester: caller.actor, now: change.now)
      new.details.formerEnd = old.approvedUntil
      guard try change.transaction.update(new, tenant: caller.tenant) else { throw Self.appExists }
      change.isPolicyChanged = old.state == .approved
      try change.record(.appChanged, id, Self.details(new), from: AppView(old), to: AppView(new))
      return new
    }
  }

  private struct ReasonBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case reason, expiresAt }
    let reason: String?
    /// Seconds since 1970; only with an approval.
    let expiresAt: Int64?

    func check(now: Int64) throws {
      guard reason.map(PolicyText.isName) ?? true else {
        throw HTTPProblem.invalid("reason", "has 1 to 200 bytes and no control characters")
      }
      guard expiresAt.map({ $0 > now }) ?? true else { throw HTTPProblem.invalid("expiresAt", "is not in the future") }
    }
  }

  @Sendable func approveApp(_ call: Call, _ caller: Caller) async throws -> Response {
    let (id, body) = (try call.id(), try call.strict(ReasonBody.self))
    return try await changeApp(call, caller, id: id) { old, change in
      try body.check(now: change.now)
      guard old.state == .requested else { throw HTTPProblem(.conflict, "It is \(old.state.rawValue) already.") }
      var app = old
      if let expiresAt = body.expiresAt { app.expiresAt = expiresAt }
      guard app.expiresAt.map({ $0 > change.now }) ?? true else {
        throw HTTPProblem(.conflict, "The time that was asked for is over: give another expiresAt.")
      }
      let yes = AppRecord.Approver(actor: caller.actor.description, at: change.now, reason: body.reason)
      guard !app.details.approvers.contains(where: { $0.actor == yes.actor }) else {
        throw HTTPProblem(.conflict, "This caller has approved it; another person has to.")
      }
      app.details.approvers.append(yes)
      if try found(change.transaction.tenant(id: caller.tenant)).needsTwoApprovers {
        // A token is nobody in particular: whoever has one may have the other, too.
        guard case .administrator = caller.actor else {
          throw HTTPProblem(.forbidden, "The company asks two people, who sign in themselves.")
        }
        // Who agreed, agreed to the time that was asked for.
        guard app.expiresAt.map({ end in old.expiresAt.map { end <= $0 } ?? true }) ?? true else {
          throw HTTPProblem(.conflict, "It was asked for a shorter time. Change what is asked for instead.")
        }
        app.state = try Self.people(app, in: change).count >= 2 ? .approved : .requested
      } else {
        app.state = .approved
      }
      _ = try change.transaction.update(app, tenant: caller.tenant)
      change.isPolicyChanged = app.state == .approved
      let details = Self.details(app).merging(["state": app.state.rawValue]) { $1 }
      try change.record(.appApproved, id, details, from: AppView(old), to: AppView(app))
      return app
    }
  }

  /// Ends an approval, or refuses what was asked for. One person is enough: a revocation must not wait.
  @Sendable func revokeApp(_ call: Call, _ caller: Caller) async throws -> Response {
    let (id, body) = (try call.id(), try call.strict(ReasonBody.self))
    return try await changeApp(call, caller, id: id) { old, change in
      try body.check(now: change.now)
      guard old.state != .revoked else { throw HTTPProblem(.conflict, "It is revoked already.") }
      var app = old
      app.state = .revoked
      app.details.revokedBy = caller.actor.description
      app.details.revocationReason = body.reason
      app.details.wasRefused = old.state == .requested ? true : nil
      _ = try change.transaction.update(app, tenant: caller.tenant)
      change.isPolicyChanged = old.state == .approved
      try change.record(.appRevoked, id, Self.details(app), from: AppView(old), to: AppView(app))
      return app
    }
  }

  @Sendable func removeApp(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    try await commit(caller) { change in
      let old = try found(change.transaction.appRecord(tenant: caller.tenant, id: id))
      try call.requireMatch(AppView(old).tag)
      _ = try change.transaction.deleteApp(tenant: caller.tenant, id: id)
      change.isPolicyChanged = old.state == .approved
      try change.record(.appRemoved, id, Self.details(old), from: AppView(old))
    }
    return .plain(.noContent)
  }

  private func changeApp(
    _ call: Call, _ caller: Caller, id: String, _ body: @Sendable (AppRecord, Change) throws -> AppRecord
  ) async throws -> Response {
    let app = try await commit(caller) { change in
      let old = try found(change.transaction.appRecord(tenant: caller.tenant, id: id))
      try call.requireMatch(AppView(old).tag)
      return try body(old, change)
    }
    return Self.response(app)
  }

  /// The administrators who stand behind an app: who asked for it, and who approved it. Whoever was removed does not, nor
  /// who may not approve any more.
  private static func people(_ app: AppRecord, in change: Change) throws -> Set<String> {
    try Set(app.details.approvers.map(\.actor) + [app.details.requester].compactMap(\.self)).filter { text in
      guard case .administrator(let id)? = Actor(text) else { return false }
      let person = try change.transaction.administrator(tenant: change.tenant, id: id)
      return person?.role.permissions.contains(.changePolicy) ?? false
    }
  }

  private static func details(_ app: AppRecord) -> [String: String] {
    ["bundleId": app.approval.bundleId, "teamId": app.approval.teamId]
  }

  private static let appExists = HTTPProblem(
    .alreadyExists, "There is an app of this bundle id and team: change that one.")

  private static func response(_ app: AppRecord) -> Response {
    let view = AppView(app)
    return .json(view, headers: [.eTag: view.tag.description])
  }
}

/// How many people an approval takes. Its own resource, because it binds those who approve.
extension PolicyServer {
  struct ApprovalSettings: StrictBody, Encodable {
    enum CodingKeys: String, CodingKey, CaseIterable { case twoPeople }
    let twoPeople: Bool

    var tag: EntityTag { EntityTag(of: Response.encoded(self)) }
  }

  @Sendable func showApprovalSettings(_ call: Call, _ caller: Caller) async throws -> Response {
    let tenant = try found(await store.read { try $0.tenant(id: caller.tenant) })
    let settings = ApprovalSettings(twoPeople: tenant.needsTwoApprovers)
    return .json(settings, headers: [.eTag: settings.tag.description])
  }

  @Sendable func changeApprovalSettings(_ call: Call, _ caller: Caller) async throws -> Response {
    let settings = try call.strict(ApprovalSettings.self)
    try await commit(caller) { change in
      var tenant = try found(change.transaction.tenant(id: caller.tenant))
      try call.requireMatch(ApprovalSettings(twoPeople: tenant.needsTwoApprovers).tag)
      if tenant.needsTwoApprovers && !settings.twoPeople {
        // A token is nobody in particular.
        guard case .administrator = caller.actor else {
          throw HTTPProblem(.forbidden, "An owner who signed in ends this.")
        }
      }
      let old = ApprovalSettings(twoPeople: tenant.needsTwoApprovers)
      tenant.needsTwoApprovers = settings.twoPeople
      try change.transaction.update(tenant)
      try change.record(.settingsChanged, nil, ["twoPeople": "\(settings.twoPeople)"], from: old, to: settings)
    }
    return .json(settings, headers: [.eTag: settings.tag.description])
  }
}
