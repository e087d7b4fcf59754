internal import CofferAPI
internal import CofferPolicy
internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// The apps that a company approved. Every change is signed into a new revision in the same transaction.
extension PolicyServer {
  @Sendable func listItems(_ call: Call, _ caller: Caller) async throws -> Response {
    let body = try await reads.value(.items(tenant: caller.tenant)) { transaction in
      ByteBuffer(bytes: Response.encoded(try transaction.apps(tenant: caller.tenant).map(Item.init)))
    }
    return .json(encoded: try found(body))
  }

  @Sendable func showItem(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    let app = try await store.read { try $0.app(tenant: caller.tenant, id: id) }
    return try Self.response(found(app))
  }

  @Sendable func createItem(_ call: Call, _ caller: Caller) async throws -> Response {
    let app = try call.strict(ItemBody.self).approval(id: UUID().uuidString.lowercased())
    return try await create(call, caller) { change in
      try Self.demandOnePersonSuffices(change)
      // What was asked for or revoked is not an item; approving it here takes its place.
      if let other = try change.transaction.appRecord(tenant: caller.tenant, identity: app.identity),
        other.state != .approved
      {
        _ = try change.transaction.deleteApp(tenant: caller.tenant, id: other.approval.id)
        // Why it was revoked, and by whom, would be gone with it.
        var details = ["state": other.state.rawValue, "replacedBy": app.id]
        details["revokedBy"] = other.details.revokedBy
        details["reason"] = other.details.revocationReason ?? other.details.reason
        try change.record(.appRemoved, other.approval.id, details, from: AppView(other))
      }
      try change.demandRoomForApp()
      guard try change.transaction.insert(app, tenant: caller.tenant) else { throw Self.alreadyExists }
      try change.record(
        .appApproved, app.id, ["bundleId": app.bundleId, "teamId": app.teamId], to: Self.view(app.id, in: change))
      change.isPolicyChanged = true
      return KeptAnswer(Item(app), location: "/items/\(app.id)", tag: Self.tag(app))
    }
  }

  @Sendable func replaceItem(_ call: Call, _ caller: Caller) async throws -> Response {
    let body = try call.strict(ItemBody.self)
    let id = try call.id()
    guard body.id.map({ $0.lowercased() == id }) ?? true else { throw HTTPProblem.invalid("id", "is not the path's") }
    let app = try body.approval(id: id)
    try await commit(caller) { change in
      let old = try found(change.transaction.app(tenant: caller.tenant, id: id))
      try call.demandMatch(Self.tag(old))
      guard app != old else { return }
      try Self.demandOnePersonSuffices(change)
      let before = try Self.view(id, in: change)
      guard try change.transaction.update(app, tenant: caller.tenant) else { throw Self.alreadyExists }
      try change.record(
        .appChanged, id, ["bundleId": app.bundleId, "teamId": app.teamId], from: before,
        to: Self.view(id, in: change))
      change.isPolicyChanged = true
    }
    return Self.response(app)
  }

  @Sendable func deleteItem(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    try await commit(caller) { change in
      try call.demandMatch(Self.tag(found(change.transaction.app(tenant: caller.tenant, id: id))))
      let before = try Self.view(id, in: change)
      change.isPolicyChanged = try change.transaction.deleteApp(tenant: caller.tenant, id: id)
      try change.record(.appRemoved, id, from: before)
    }
    return .plain(.noContent)
  }

  /// `/items` knows no state but *approved*, so that it cannot wait for a second person.
  private static func demandOnePersonSuffices(_ change: Change) throws {
    guard try change.transaction.tenant(id: change.tenant)?.needsTwoApprovers == false else {
      throw HTTPProblem(.conflict, "The company asks two people for each approval: use /v1/apps.")
    }
  }

  /// As `/v1/apps` shows it.
  private static func view(_ id: String, in change: Change) throws -> AppView? {
    try change.transaction.appRecord(tenant: change.tenant, id: id).map(AppView.init)
  }

  private static let alreadyExists = HTTPProblem(.alreadyExists, "This bundle id of this team is approved already.")

  private static func tag(_ app: AppApproval) -> EntityTag { EntityTag(of: Response.encoded(Item(app))) }

  private static func response(_ app: AppApproval) -> Response {
    .json(Item(app), headers: [.eTag: tag(app).description])
  }
}
