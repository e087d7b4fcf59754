internal import CofferPolicy
internal import CofferSystem
internal import Hummingbird

/// Policies that are prepared: seen, tried and published whole.
extension Console {
  var drafts: [ConsoleRoute] {
    [
      .page("/console/drafts", .readPolicy, draftsPage),
      .change("/console/drafts", .changePolicy, on: draftsPage, prepareDraft),
      .page("/console/drafts/:id", .readPolicy, draftPage),
      .change("/console/drafts/:id/note", .changePolicy, on: draftPage, renameDraft),
      .change("/console/drafts/:id/publish", .changePolicy, on: draftPage, publishDraft),
      .change("/console/drafts/:id/renew", .changePolicy, on: draftPage, renewDraft),
      .change("/console/drafts/:id/discard", .changePolicy, on: draftPage, discardDraft),
    ]
  }

  @Sendable private func draftsPage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let (drafts, current) = try await store.read { transaction in
      (
        try transaction.resources(.draft, tenant: tenant).map { try $0.decoded(PolicyDraft.self) },
        try server.found(transaction.currentRevisionNumber(tenant: tenant))
      )
    }
    return ConsolePage("Drafts", in: .drafts) {
      Tag.p {
        "Most changes hold as soon as they are saved. What is to be looked at first goes into a draft: it begins as a "
          + "copy of what is in force, and nothing of it holds until it is published, whole."
      }
      Tag.div(.id("live-drafts"), .data(.live, "")) {
        if drafts.isEmpty {
          Tag.p(.class("empty")) {
            "There is no draft. Make one below; or change a rule or a setting where it stands, and put that into one."
          }
        } else {
          DataTable.table("Drafts", ["Draft", "State"]) {
            for draft in drafts {
              Tag.tr {
                DataTable.head { Tag.a(.href("/console/drafts/\(draft.id)")) { draft.title } }
                DataTable.cell("State") {
                  draft.base == current
                    ? "Can be published" : "Made from revision \(draft.base), but \(current) is in force now"
                }
              }
            }
          }
        }
      }
      if visit.may(.changePolicy) {
        let form = Form(visit, "/console/drafts")
        Tag.section(.class("panel"), .aria(.labelledby, "prepare")) {
          Tag.h2(.id("prepare")) { "Prepare a draft" }
          form("Make a draft of what is in force") {
            form.text("What it is for", "note", hint: "Such as: no printing from March on.", optional: true)
          }
        }
      }
    }
  }

  /// A draft with what a page needs beside it.
  struct ShownDraft: Sendable {
    let draft: PolicyDraft
    let tag: EntityTag
    let inForce: PolicyContent
    let current: Int64
    /// The company's names and those of the draft.
    let names: PolicyNames
    let apps: [AppRecord]
    /// Whether another person than who wrote it has to publish it.
    let takesAnother: Bool
    /// Whether who looks at it is another person, as far as it takes one.
    let isForVisitor: Bool
  }

  func shownDraft(_ visit: Visit) async throws -> ShownDraft {
    let (id, tenant) = (try visit.call.id(), try visit.person().administrator.tenant)
    let (caller, now) = (try visit.caller(), server.time.now().seconds)
    return try await store.read { transaction in
      let stored = try server.found(transaction.resource(.draft, id: id, tenant: tenant))
      let draft = try stored.decoded(PolicyDraft.self)
      let company = try server.found(transaction.tenant(id: tenant))
      let inForce = try PolicyContent(of: company, in: transaction)
      var names = try PolicyNames(of: tenant, in: transaction)
      names.classifications = draft.content.classifications
      let change = Change(transaction, tenant: tenant, actor: caller.actor, now: now)
      return ShownDraft(
        draft: draft, tag: EntityTag(of: stored.body.utf8),
        inForce: inForce,
        current: try server.found(transaction.currentRevisionNumber(tenant: tenant)), names: names,
        apps: try transaction.appsInForce(tenant: tenant),
        takesAnother: company.needsTwoApprovers && TwoPeople.widens(from: inForce, to: draft.content),
        isForVisitor: try TwoPeople.isAnother(than: draft.writers, in: change))
    }
  }

  @Sendable private func draftPage(_ visit: Visit) async throws -> ConsolePage {
    let shown = try await shownDraft(visit)
    let (draft, id) = (shown.draft, shown.draft.id)
    let difference = PolicyDifference(from: PolicyState(shown.inForce), to: PolicyState(draft.content), shown.names)
    return ConsolePage("Draft: \(draft.title)", in: .drafts) {
      Tag.section(.class("panel"), .aria(.labelledby, "differences")) {
        Tag.h2(.id("differences")) { "What publishing it would change" }
        difference.html(nothing: "Nothing: it says what is in force. Change below what is to be otherwise.")
        Tag.p {
          Tag.a(.href(("/console/simulator" as Link).asking(["by": "draft-\(id)"]))) {
            "Ask what it would decide, beside what is decided now"
          }
        }
      }
      if visit.may(.changePolicy) && !difference.lines.isEmpty { publishing(shown, visit) }
      draftContent(shown, visit)
      if visit.may(.changePolicy) { keeping(shown, visit) }
    }
  }

  private func publishing(_ shown: ShownDraft, _ visit: Visit) -> HTML {
    let draft = shown.draft
    return Tag.section(.class("panel"), .aria(.labelledby, "publish")) {
      if draft.base == shown.current {
        Tag.h2(.id("publish")) { "Publish" }
        Tag.p {
          "The draft takes the place of revision \(shown.current), whole, as revision \(shown.current + 1). Devices "
            + "decide by it as soon as they have it."
        }
        let isOwn =
          visit.signedIn.map { draft.writers.contains(Actor.administrator($0.administrator.id).description) } ?? false
        if shown.takesAnother {
          Tag.p(.class("caution")) {
            "Your company asks two people for what lets more through. "
            if isOwn {
              "You wrote this, or a part of it: another administrator publishes it."
            } else if shown.isForVisitor {
              "Somebody else wrote this: you can publish it."
            } else {
              "Who wrote this, or a part of it, did not sign in or may no longer change the policy, so that nobody can "
                + "publish it: write what it says into a new draft, which another administrator publishes."
            }
          }
        }
        if !shown.takesAnother || shown.isForVisitor {
          Form(visit, "/console/drafts/\(draft.id)/publish")("Publish the draft", match: shown.tag) {}
        }
      } else {
        Tag.h2(.id("publish")) { "It cannot be published as it is" }
        Tag.p {
          "It was made from revision \(draft.base), and revision \(shown.current) is in force now. Publishing it would "
            + "take back what was changed since. Look at the list above: what you did not mean is what came since."
        }
        Form(visit, "/console/drafts/\(draft.id)/renew")("Make a new draft of it, from revision \(shown.current)") {}
      }
    }
  }

  @HTMLBuilder private func keeping(_ shown: ShownDraft, _ visit: Visit) -> HTML {
    let id = shown.draft.id
    let note = Form(visit, "/console/drafts/\(id)/note")
    Tag.section(.class("panel"), .aria(.labelledby, "note")) {
      Tag.h2(.id("note")) { "What it is for" }
      note("Save the note", match: shown.tag) {
        note.text("What it is for", "note", shown.draft.note, optional: true)
      }
    }
    Tag.section(.class("panel"), .aria(.labelledby, "discard")) {
      Tag.h2(.id("discard")) { "Discard" }
      Tag.p { "What is in force stays as it is." }
      Form(visit, "/console/drafts/\(id)/discard")("Discard the draft", match: shown.tag, style: "danger") {}
    }
  }

  @Sendable private func prepareDraft(_ visit: Visit) async throws -> Outcome {
    let draft = try await newDraft(visit.values.text("note") ?? "", visit).draft
    return .see("/console/drafts/\(draft.id)", .draftMade)
  }

  /// A draft of what is in force, with its tag.
  private func newDraft(_ note: String, _ visit: Visit) async throws -> (draft: PolicyDraft, tag: String?) {
    let answer = try await server.createDraft(visit.asking(.object(["note": .string(note)])), visit.caller())
    return (try await answer.decoded(PolicyDraft.self), answer.headers[.eTag])
  }

  /// The tag of something in force.
  typealias TagInForce = @Sendable (any StoreTransaction, Tenant) throws -> EntityTag

  /// The tag of a resource.
  func inForce(_ kind: ResourceKind, _ id: String) -> TagInForce {
    { [server] transaction, tenant in
      EntityTag(of: try server.found(transaction.resource(kind, id: id, tenant: tenant.id)).body.utf8)
    }
  }

  /// The tag of a part of a company's settings.
  func inForce(_ tag: @escaping @Sendable (Tenant) -> EntityTag) -> TagInForce { { _, tenant in tag(tenant) } }

  /// Puts a change of what is in force into a new draft.
  ///
  /// - Parameter seen: what is changed, which has to be what the form showed; nil for what is new.
  func prepare(
    _ note: String, _ visit: Visit, inPlaceOf seen: TagInForce?, _ change: (inout PolicyContent) throws -> Void
  ) async throws -> Outcome {
    var base: Int64?
    if let seen {
      base = try await store.read { transaction in
        let tenant = try server.found(transaction.tenant(id: visit.person().administrator.tenant))
        try visit.asking().requireMatch(seen(transaction, tenant))
        return try transaction.currentRevisionNumber(tenant: tenant.id)
      }
    }
    var (draft, tag) = try await newDraft(note, visit)
    do {
      guard base.map({ $0 == draft.base }) ?? true else {
        throw HTTPProblem(.preconditionFailed, "The policy was changed at the same moment.")
      }
      try change(&draft.content)
      let body: JSONValue = .object(["content": try JSONValue(encoding: draft.content)])
      tag = try await server.changeDraft(visit.asking(body, id: draft.id, match: tag), visit.caller()).headers[.eTag]
    } catch {
      // A draft that says nothing new is of no use to anybody.
      _ = try await server.removeDraft(visit.asking(id: draft.id, match: tag), visit.caller())
      throw error
    }
    return .see("/console/drafts/\(draft.id)", .draftMade)
  }

  @Sendable private func renameDraft(_ visit: Visit) async throws -> Outcome {
    let body: JSONValue = .object(["note": .string(visit.values.text("note") ?? "")])
    _ = try await server.changeDraft(visit.asking(body), visit.caller())
    return .see("/console/drafts/\(try visit.call.id())", .draftChanged)
  }

  @Sendable private func publishDraft(_ visit: Visit) async throws -> Outcome {
    _ = try await server.publishDraft(visit.asking(), visit.caller())
    return .see("/console/revisions", .published)
  }

  /// The same content once more, as a draft of what is in force now. The old one is kept until somebody discards it.
  @Sendable private func renewDraft(_ visit: Visit) async throws -> Outcome {
    let draft = try await shownDraft(visit).draft
    let body: JSONValue = .object(["note": .string(draft.note), "content": try JSONValue(encoding: draft.content)])
    let made = try await server.createDraft(visit.asking(body), visit.caller(), renewing: draft)
      .decoded(PolicyDraft.self)
    return .see("/console/drafts/\(made.id)", .draftMade)
  }

  @Sendable private func discardDraft(_ visit: Visit) async throws -> Outcome {
    _ = try await server.removeDraft(visit.asking(), visit.caller())
    return .see("/console/drafts", .draftRemoved)
  }
}

extension PolicyDraft {
  /// What people call it.
  var title: String { note.isEmpty ? "Draft \(id.prefix(8))" : note }
}

extension PolicyContent {
  /// Puts a rule, a label or a file type where the one of this name is, or at the end; without one, takes that one away.
  mutating func put<Resource: NamedResource>(
    _ resource: Resource?, in list: WritableKeyPath<PolicyContent, [Resource]>, inPlaceOf name: String?
  ) throws {
    let index = name.flatMap { name in self[keyPath: list].firstIndex { $0.resourceName == name } }
    if name != nil && index == nil { throw HTTPProblem.notFound }
    if let resource {
      try resource.check()
      let isTaken = self[keyPath: list].contains { $0.resourceName == resource.resourceName }
      guard resource.resourceName == name || !isTaken else {
        let field = Resource.kind == .fileType ? "extension" : "id"
        throw HTTPProblem.invalid(field, "is the name of another \(Words.kind(Resource.kind))")
      }
    }
    switch (resource, index) {
    case (let resource?, let index?): self[keyPath: list][index] = resource
    case (let resource?, nil): self[keyPath: list].append(resource)
    case (nil, let index?): self[keyPath: list].remove(at: index)
    case (nil, nil): break
    }
  }
}

extension Visit {
  /// Whether the form's other button was pressed: what it says is to be tried first.
  var isForDraft: Bool { values.exact("then") == "draft" }
}
