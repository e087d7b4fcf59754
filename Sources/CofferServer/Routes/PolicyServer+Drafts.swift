internal import CofferPolicy
internal import CofferSystem
internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// A policy that somebody prepares. Nothing of it holds until it is published, whole.
struct PolicyDraft: Codable, Sendable {
  let id: String
  var note: String
  /// The revision that it was made from: when another is in force, publishing would take that one back.
  var base: Int64
  var content: PolicyContent
  /// ``Actor``: who wrote the content, as it is now.
  var author: String?
  /// ``Actor``: whose content it was at first, where that was not what was in force, and who has let it let more through since.
  /// Absent in what was stored before there was such a list.
  var contributors: [String]?

  /// Those of whom nobody is the other one of two people.
  var writers: [String] { contributors ?? [author].compactMap(\.self) }
}

extension PolicyServer {
  private struct DraftBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case note, content }
    let note: String?
    /// Absent in a new draft: what is in force.
    let content: PolicyContent?
  }

  /// One of a list, which would be large with all their contents.
  private struct DraftLine: Encodable {
    let id: String
    let note: String
    let base: Int64
  }

  @Sendable func listDrafts(_ call: Call, _ caller: Caller) async throws -> Response {
    let request = try PageRequest(call, caller, sealing)
    let found = try await store.read {
      try $0.resources(.draft, tenant: caller.tenant, after: request.after, limit: request.limit + 1)
    }
    return .json(
      try request.page(of: found) { stored in
        let draft = try stored.decoded(PolicyDraft.self)
        return DraftLine(id: draft.id, note: draft.note, base: draft.base)
      })
  }

  @Sendable func showDraft(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    return try Self.response(found(await store.read { try $0.resource(.draft, id: id, tenant: caller.tenant) }))
  }

  @Sendable func createDraft(_ call: Call, _ caller: Caller) async throws -> Response {
    try await createDraft(call, caller, renewing: nil)
  }

  /// - Parameter former: the draft that is to be made anew, with the content that is given: it stays theirs who wrote it, so that who
  ///   has it made anew may be the other one of two people.
  func createDraft(_ call: Call, _ caller: Caller, renewing former: PolicyDraft?) async throws -> Response {
    let body = try call.strict(DraftBody.self)
    let id = UUID().uuidString.lowercased()
    return try await create(call, caller) { change in
      let tenant = try found(change.transaction.tenant(id: caller.tenant))
      let (inForce, actor) = (try PolicyContent(of: tenant, in: change.transaction), caller.actor.description)
      var contributors = body.content == nil ? [] : former?.writers ?? [actor]
      if let former, try takesBack(former, inForce, in: change), !contributors.contains(actor) {
        contributors.append(actor)
      }
      let draft = PolicyDraft(
        id: id, note: body.note ?? "",
        base: try found(change.transaction.currentRevisionNumber(tenant: caller.tenant)),
        content: body.content ?? inForce, author: actor, contributors: contributors)
      try check(draft, in: change.transaction, of: tenant, knowing: inForce)
      try change.demandRoom(for: .draft)
      let stored = StoredResource(.draft, id: id, draft)
      _ = try change.transaction.insert(stored, tenant: caller.tenant)
      try change.record(.resourceCreated, id, replacing: nil, with: stored)
      return KeptAnswer(draft, location: "/v1/drafts/\(id)", tag: EntityTag(of: stored.body.utf8))
    }
  }

  @Sendable func changeDraft(_ call: Call, _ caller: Caller) async throws -> Response {
    let (id, body) = (try call.id(), try call.strict(DraftBody.self))
    let stored = try await commit(caller) { change in
      let old = try found(change.transaction.resource(.draft, id: id, tenant: caller.tenant))
      try call.requireMatch(EntityTag(of: old.body.utf8))
      var draft = try old.decoded(PolicyDraft.self)
      draft.note = body.note ?? draft.note
      let former = draft.content
      if let content = body.content {
        let actor = caller.actor.description
        draft.contributors = draft.writers
        if TwoPeople.widens(from: draft.content, to: content), !draft.writers.contains(actor) {
          draft.contributors?.append(actor)
        }
        draft.content = content
        draft.author = actor
      }
      try check(
        draft, in: change.transaction, of: found(change.transaction.tenant(id: caller.tenant)), knowing: former)
      let new = StoredResource(.draft, id: id, draft)
      _ = try change.transaction.update(new, tenant: caller.tenant)
      try change.record(.resourceChanged, id, replacing: old, with: new)
      return new
    }
    return try Self.response(stored)
  }

  @Sendable func removeDraft(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    try await commit(caller) { change in
      let old = try found(change.transaction.resource(.draft, id: id, tenant: caller.tenant))
      try call.requireMatch(EntityTag(of: old.body.utf8))
      _ = try change.transaction.deleteResource(.draft, id: id, tenant: caller.tenant)
      try change.record(.resourceRemoved, id, replacing: old, with: nil)
    }
    return .plain(.noContent)
  }

  /// Makes a draft the policy, in place of the very revision that it was made from, and removes it.
  @Sendable func publishDraft(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    let revision = try await commit(caller) { change in
      let old = try found(change.transaction.resource(.draft, id: id, tenant: caller.tenant))
      try call.requireMatch(EntityTag(of: old.body.utf8))
      let draft = try old.decoded(PolicyDraft.self)
      let current = try found(change.transaction.currentRevisionNumber(tenant: caller.tenant))
      guard draft.base == current else {
        throw HTTPProblem(
          .conflict, "Revision \(current) is in force; the draft was made from \(draft.base). Make a new one.")
      }
      try TwoPeople.demandAnother(
        than: draft.writers, from: Self.content(in: change), to: draft.content, in: change)
      try draft.content.replace(in: change)
      _ = try change.transaction.deleteResource(.draft, id: id, tenant: caller.tenant)
      try change.record(.draftPublished, id, replacing: old, with: nil)
      return current + 1
    }
    return .json(["revision": revision])
  }

  /// Whether a draft, made anew as it is, lets more through by taking back what changed since it was made. That is nobody's who wrote it.
  private func takesBack(_ draft: PolicyDraft, _ inForce: PolicyContent, in change: Change) throws -> Bool {
    guard let base = try change.transaction.revision(tenant: change.tenant, number: draft.base) else { return true }
    return TwoPeople.widens(from: inForce, to: PolicyContent(of: try Self.policy(of: base)))
  }

  /// The company's present one.
  static func content(in change: Change) throws -> PolicyContent {
    guard let tenant = try change.transaction.tenant(id: change.tenant) else { throw HTTPProblem.notFound }
    return try PolicyContent(of: tenant, in: change.transaction)
  }

  /// A draft that devices would not accept is refused when it is written, not when it is published.
  ///
  /// - Parameter known: what may stay as it is, for it was stored before it would have been refused.
  private func check(
    _ draft: PolicyDraft, in transaction: any StoreTransaction, of tenant: Tenant, knowing known: PolicyContent
  ) throws {
    guard draft.note.isEmpty || PolicyText.isName(draft.note) else {
      throw HTTPProblem.invalid("note", "has at most 200 bytes and no control characters")
    }
    let rules = Set(known.rules)
    for rule in draft.content.rules where !rules.contains(rule) { try rule.check() }
    if let (name, reason) = ManagedSettings.fault(in: draft.content.settings.managed ?? [:]) {
      throw HTTPProblem.invalid("settings.managed", "\(PolicyText.isIdentifier(name) ? name : "a name") \(reason)")
    }
    try validate(policy(of: tenant, draft.content, in: transaction))
  }

  func policy(of tenant: Tenant, _ content: PolicyContent, in transaction: any StoreTransaction) throws -> Policy {
    let now = time.now().seconds
    return content.policy(
      of: tenant, revision: try transaction.currentRevisionNumber(tenant: tenant.id) ?? 1, issuedAt: now,
      notAfter: now + Publisher.bundleLifetime, prevHash: nil, apps: try transaction.appsInForce(tenant: tenant.id))
  }

  func validate(_ policy: Policy) throws {
    do { try policy.validate() } catch {
      guard case .malformed(let part) = error else { throw error }
      throw HTTPProblem.invalid(part, "is not as devices accept it")
    }
  }

  private static func response(_ stored: StoredResource) throws -> Response {
    .json(
      try stored.decoded(PolicyDraft.self), headers: [.eTag: EntityTag(of: stored.body.utf8).description])
  }
}
