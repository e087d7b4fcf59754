internal import CofferPolicy
internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// The policy in force, and all that were: what held when, and the way back.
extension PolicyServer {
  private struct PolicyView: Encodable {
    let revision: Int64
    let digest: String
    let content: PolicyContent
  }

  @Sendable func showPolicyContent(_ call: Call, _ caller: Caller) async throws -> Response {
    let view = try await store.read { transaction in
      let tenant = try found(transaction.tenant(id: caller.tenant))
      let revision = try found(transaction.currentRevision(tenant: caller.tenant))
      return PolicyView(
        revision: revision.number, digest: revision.digest, content: try PolicyContent(of: tenant, in: transaction))
    }
    return .json(view, headers: [.eTag: EntityTag(digest: view.digest).description])
  }

  private struct RevisionView: Encodable {
    let revision: Int64
    let digest: String
    let keyEpoch: Int64
    let issuedAt: Int64
    let notAfter: Int64
    var policy: Policy?

    init(_ revision: RevisionHead, policy: Policy? = nil) {
      self.revision = revision.number
      digest = revision.digest
      keyEpoch = revision.keyEpoch
      issuedAt = revision.issuedAt
      notAfter = revision.notAfter
      self.policy = policy
    }
  }

  /// The newest first: the cursor goes back in time.
  @Sendable func listRevisions(_ call: Call, _ caller: Caller) async throws -> Response {
    let request = try PageRequest(call, caller, sealing)
    let before = request.after == 0 ? Int64.max : request.after
    let found = try await store.read {
      try $0.revisionHeads(tenant: caller.tenant, before: before, limit: request.limit + 1)
    }
    return .json(try request.page(of: found.map { (number: $0.number, value: $0) }) { RevisionView($0) })
  }

  @Sendable func showRevision(_ call: Call, _ caller: Caller) async throws -> Response {
    let number = try Self.number(call)
    let revision = try found(await store.read { try $0.revision(tenant: caller.tenant, number: number) })
    return .json(RevisionView(revision.head, policy: try Self.policy(of: revision)))
  }

  /// Brings back what an earlier revision said, as a new one. Where two people have to approve, an app that is not
  /// approved now is not brought back by one. Nor is an app that was removed since: how long it was approved for is gone with it.
  @Sendable func restoreRevision(_ call: Call, _ caller: Caller) async throws -> Response {
    let number = try Self.number(call)
    let next = try await commit(caller) { change in
      let transaction = change.transaction
      let earlier = try Self.policy(of: found(transaction.revision(tenant: caller.tenant, number: number)))
      let current = try found(transaction.currentRevision(tenant: caller.tenant))
      try call.requireMatch(EntityTag(digest: current.digest))
      try restoreApps(earlier, change)
      let content = PolicyContent(of: earlier)
      try TwoPeople.demandNarrowing(TwoPeople.widens(from: Self.content(in: change), to: content), in: change)
      try content.replace(in: change)
      try change.record(.revisionRestored, "\(number)")
      return current.number + 1
    }
    return .json(["revision": next])
  }

  private func restoreApps(_ earlier: Policy, _ change: Change) throws {
    let (transaction, tenant) = (change.transaction, change.tenant)
    let twoPeople = try found(transaction.tenant(id: tenant)).needsTwoApprovers
    let versions = earlier.rules.reduce(into: [String: String]()) { versions, rule in
      guard PolicyContent.isOwn(rule.id), case .appVersion(let range)? = rule.conditions.first?.test else { return }
      versions[String(rule.id.dropFirst("minimum-version.".count))] = range.below
    }
    let wanted = Dictionary(uniqueKeysWithValues: earlier.apps.map { ($0.id, $0) })
    for var app in try transaction.appsInForce(tenant: tenant) where wanted[app.approval.id] == nil {
      let old = AppView(app)
      app.state = .revoked
      app.details.revokedBy = change.actor.description
      _ = try transaction.update(app, tenant: tenant)
      try change.record(.appRevoked, app.approval.id, from: old, to: AppView(app))
    }
    // All before the first makes room. One that was given another name since is found by its id.
    let known = try earlier.apps.map { approval in
      try transaction.appRecord(tenant: tenant, identity: approval.identity)
        ?? transaction.appRecord(tenant: tenant, id: approval.id)
    }
    for (approval, known) in zip(earlier.apps, known) {
      guard let known else { continue }
      // An approval that had an end keeps it, and one that is over stays so.
      if let end = known.expiresAt, end <= change.now { continue }
      var app = AppRecord(
        approval: approval, state: .approved, expiresAt: known.expiresAt,
        details: .init(
          minimumVersion: versions[approval.id], requester: change.actor.description,
          approvers: [.init(actor: change.actor.description, at: change.now, reason: nil)]))
      if known.state == .approved, known.approval == approval, known.details.minimumVersion == versions[approval.id] {
        continue
      }
      guard !twoPeople else {
        throw HTTPProblem(.conflict, "It approves \(approval.bundleId), for which the company asks two people.")
      }
      app.details.platform = known.details.platform
      // What has this id or this name today makes room: it is this app, or another one that has got its id since.
      if let other = try transaction.appRecord(tenant: tenant, id: approval.id), known.approval.id != approval.id {
        _ = try transaction.deleteApp(tenant: tenant, id: approval.id)
        try change.record(.appRemoved, approval.id, ["revision": "\(earlier.revision)"], from: AppView(other))
      }
      _ = try transaction.deleteApp(tenant: tenant, id: known.approval.id)
      try change.demandRoomForApp()
      guard try transaction.insert(app, tenant: tenant) else {
        throw HTTPProblem(.conflict, "An app stands in the way.")
      }
      try change.record(
        .appApproved, approval.id, ["revision": "\(earlier.revision)"], from: AppView(known), to: AppView(app))
    }
  }

  private static func number(_ call: Call) throws -> Int64 {
    guard let text = call.parameters.get("id"), let number = Int64(text), number > 0 else { throw HTTPProblem.notFound }
    return number
  }
}
