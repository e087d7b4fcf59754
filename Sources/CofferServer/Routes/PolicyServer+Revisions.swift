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
      try RestoredApps(of: earlier, tenant: change.tenant, now: change.now, in: transaction).bringBack(in: change)
      let content = PolicyContent(of: earlier)
      try TwoPeople.demandNarrowing(TwoPeople.widens(from: Self.content(in: change), to: content), in: change)
      try content.replace(in: change)
      try change.record(.revisionRestored, "\(number)")
      return current.number + 1
    }
    return .json(["revision": next])
  }

  private static func number(_ call: Call) throws -> Int64 {
    guard let text = call.parameters.get("id"), let number = Int64(text), number > 0 else { throw HTTPProblem.notFound }
    return number
  }
}
