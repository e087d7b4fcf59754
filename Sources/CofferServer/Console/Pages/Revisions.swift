internal import CofferPolicy
internal import Hummingbird

/// What was in force when, what each revision changed, and the way back.
extension Console {
  var revisions: [ConsoleRoute] {
    [
      .page("/console/revisions", .readPolicy, revisionsPage),
      .page("/console/revisions/:id", .readPolicy, revisionPage),
      .change("/console/revisions/:id/restore", .changePolicy, on: revisionPage, restoreRevision),
    ]
  }

  private static let revisionsOnPage = 20

  /// A revision with what it changed.
  private struct ShownRevision: Sendable {
    let revision: Revision
    /// Nil for the first one.
    let difference: PolicyDifference?
  }

  private func shown(_ revision: Revision, before: Revision?, _ names: PolicyNames) throws -> ShownRevision {
    let state = { (revision: Revision) in PolicyState(try PolicyServer.policy(of: revision)) }
    return ShownRevision(
      revision: revision,
      difference: try before.map { try PolicyDifference(from: state($0), to: state(revision), names) })
  }

  @Sendable private func revisionsPage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let before = visit.values.text("before").flatMap { Int64($0) } ?? Int64.max
    let (found, names) = try await store.read { transaction in
      (
        try transaction.revisions(tenant: tenant, before: before, limit: Self.revisionsOnPage + 1),
        try PolicyNames(of: tenant, in: transaction)
      )
    }
    let lines = try found.prefix(Self.revisionsOnPage).enumerated().map { index, revision in
      try shown(revision, before: index + 1 < found.count ? found[index + 1] : nil, names)
    }
    return ConsolePage("Revisions", in: .revisions) {
      Tag.p {
        "Each change of the policy is signed as a new revision, and all are kept: this is what was in force when, the "
          + "newest first."
      }
      Tag.div(.id("live-revisions"), .data(.live, "")) {
        DataTable.table("Revisions", ["Revision", "Signed", "What changed"]) {
          for line in lines {
            Tag.tr {
              DataTable.head {
                Tag.a(.href("/console/revisions/\(line.revision.number)")) { "Revision \(line.revision.number)" }
              }
              DataTable.cell("Signed") { Words.time(line.revision.issuedAt) }
              DataTable.cell("What changed") { changes(line) }
            }
          }
        }
      }
      if found.count > Self.revisionsOnPage, let last = lines.last {
        Paging.link("/console/revisions?before=", last.revision.number, "Show older ones")
      }
    }
  }

  private static let signedAnew = "Nothing: it was signed anew, so that devices may go on taking it up."

  private func changes(_ line: ShownRevision) -> HTML {
    line.difference?.html(nothing: Self.signedAnew) ?? .text("The company’s first policy.")
  }

  private struct Shown: Sendable {
    let revision: Revision
    let before: Revision?
    let current: Revision
    let names: PolicyNames
    /// What it said, as far as that can come back; nil where it is in force.
    let restorable: Policy?
  }

  private func shown(_ visit: Visit) async throws -> Shown {
    let tenant = try visit.person().administrator.tenant
    guard let number = visit.call.parameters.get("id").flatMap({ Int64($0) }), number > 0 else {
      throw HTTPProblem.notFound
    }
    return try await store.read { transaction in
      let revision = try server.found(transaction.revision(tenant: tenant, number: number))
      let current = try server.found(transaction.currentRevision(tenant: tenant))
      var restorable: Policy?
      if current.number != number {
        restorable =
          try RestoredApps(of: PolicyServer.policy(of: revision), tenant: tenant, now: visit.now, in: transaction)
          .policy
      }
      return Shown(
        revision: revision,
        before: number > 1 ? try transaction.revision(tenant: tenant, number: number - 1) : nil,
        current: current,
        names: try PolicyNames(of: tenant, in: transaction), restorable: restorable)
    }
  }

  @Sendable private func revisionPage(_ visit: Visit) async throws -> ConsolePage {
    let shown = try await shown(visit)
    let (revision, policy) = (shown.revision, try PolicyServer.policy(of: shown.revision))
    let line = try self.shown(revision, before: shown.before, shown.names)
    let isCurrent = shown.restorable == nil
    return ConsolePage("Revision \(revision.number)", in: .revisions) {
      Tag.section(.class("panel"), .aria(.labelledby, "changed")) {
        Tag.h2(.id("changed")) { "What it changed" }
        changes(line)
        Tag.p(.class("hint")) {
          "Signed "
          Words.time(revision.issuedAt)
          ", with the key of epoch \(revision.keyEpoch). \(isCurrent ? "It is in force now." : "It is not in force now.")"
        }
      }
      if !isCurrent { wayBack(shown, visit) }
      Tag.section(.class("panel"), .aria(.labelledby, "said")) {
        Tag.h2(.id("said")) { "What it says" }
        Tag.p {
          Tag.a(.href(("/console/simulator" as Link).asking(["by": "revision-\(revision.number)"]))) {
            "Ask what it would decide"
          }
        }
        content(policy, shown.names)
      }
    }
  }

  private func wayBack(_ shown: Shown, _ visit: Visit) -> HTML? {
    let number = shown.revision.number
    guard let restorable = shown.restorable, let current = try? PolicyServer.policy(of: shown.current) else {
      return nil
    }
    var (now, then) = (PolicyState(current), PolicyState(restorable))
    // Going back brings no key back.
    (now.keyEpoch, then.keyEpoch) = (nil, nil)
    let difference = PolicyDifference(from: now, to: then, shown.names)
    return Tag.section(.class("panel"), .aria(.labelledby, "back")) {
      Tag.h2(.id("back")) { "Going back to it would change" }
      difference.html(nothing: "Nothing: what is in force says the same.")
      if visit.may(.changePolicy) && !difference.lines.isEmpty {
        Tag.p {
          "What it says is signed as a new revision, \(shown.current.number + 1). An approval that is over by now stays "
            + "over, and an app that was removed since does not come back. The keys stay as they are."
        }
        Form(visit, "/console/revisions/\(number)/restore")(
          "Go back to revision \(number)", match: EntityTag(digest: shown.current.digest)
        ) {}
      }
    }
  }

  @HTMLBuilder private func content(_ policy: Policy, _ names: PolicyNames) -> HTML {
    let content = PolicyContent(of: policy)
    let names = names.with(policy.apps, policy.classifications)
    Tag.dl {
      Facts.fact("Approved apps") { policy.apps.isEmpty ? "none" : RuleWords.list(policy.apps.map(\.name), "and") }
      Facts.fact("File types") {
        policy.fileTypes.isEmpty
          ? "those that every device knows"
          : policy.fileTypes.map { ".\($0.extension)" }
            .joined(separator: " ")
      }
      Facts.fact("Classifications") {
        policy.classifications.isEmpty ? "none" : RuleWords.list(policy.classifications.map(\.name), "and")
      }
    }
    Tag.h3 { "Settings" }
    PolicyFacts.settings(content)
    Tag.h3 { "Rules" }
    if content.rules.isEmpty {
      Tag.p(.class("empty")) { "It has no rule." }
    } else {
      RuleTable(names: names, caption: "Rules of the revision").html(content.rules) { _ in nil }
    }
  }

  @Sendable private func restoreRevision(_ visit: Visit) async throws -> Outcome {
    _ = try await server.restoreRevision(visit.asking(), visit.caller())
    return .see("/console/revisions", .restored)
  }
}
