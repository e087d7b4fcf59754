internal import CofferPolicy
internal import Hummingbird

/// Rules: what each says, in words, and forms to add, change and remove them.
extension Console {
  var rules: [ConsoleRoute] {
    [
      .page("/console/rules", .readPolicy, rulesPage),
      .page("/console/new-rule", .changePolicy, newRulePage),
      .change("/console/rules", .changePolicy, on: newRulePage, addRule),
      .page("/console/rules/:id", .readPolicy, rulePage),
      .change("/console/rules/:id/change", .changePolicy, on: rulePage, changeRule),
      .change("/console/rules/:id/remove", .changePolicy, on: rulePage, removeRule),
    ]
  }

  private var ruleRoutes: ResourceRoutes<Rule> { ResourceRoutes(server: server, path: "/v1/rules") }

  @Sendable private func rulesPage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let after = try self.after(visit)
    let (rules, names) = try await store.read { transaction in
      (
        try transaction.resources(.rule, tenant: tenant, after: after, limit: PageRequest.standard + 1)
          .map { (number: $0.number, value: try $0.value.decoded(Rule.self)) },
        try PolicyNames(of: tenant, in: transaction)
      )
    }
    let more = try next(rules, "/console/rules", visit)
    return ConsolePage("Rules", in: .rules) {
      Tag.p {
        "Nothing is let out unless something allows it: an app’s approval, the settings, or a rule that permits. A rule "
          + "that forbids always wins. The order of rules does not matter."
      }
      Tag.p(.class("buttons")) {
        if visit.may(.changePolicy) { Tag.a(.class("button"), .href("/console/new-rule")) { "Add a rule" } }
        Tag.a(.class("button plain"), .href("/console/simulator")) { "Ask what would be decided" }
      }
      Tag.div(.id("live-rules"), .data(.live, "")) {
        if rules.isEmpty {
          Tag.p(.class("empty")) {
            "There is no rule, and none is needed to begin: approvals and settings decide alone. Add one to forbid "
              + "something to everybody, or to allow approved apps more under a condition."
          }
        } else {
          RuleTable(names: names, caption: "Rules in force").html(rules.prefix(PageRequest.standard).map(\.value)) {
            "/console/rules/\($0.id)"
          }
        }
      }
      more
    }
  }

  @Sendable private func newRulePage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let names = try await store.read { try PolicyNames(of: tenant, in: $0) }
    return ConsolePage("Add a rule", in: .rules) {
      Tag.section(.class("panel"), .aria(.labelledby, "rule")) {
        Tag.h2(.id("rule")) { "The rule" }
        RuleForm(form: Form(visit, "/console/rules"), names: names, rule: nil).html(
          button: "Add the rule, it holds at once", then: ["draft": "Put it into a draft to try it first"], match: nil)
      }
    }
  }

  @Sendable private func rulePage(_ visit: Visit) async throws -> ConsolePage {
    let (id, tenant) = (try visit.call.name(), try visit.person().administrator.tenant)
    let (rule, tag, names, apps) = try await store.read { transaction in
      let stored = try server.found(transaction.resource(.rule, id: id, tenant: tenant))
      return (
        try stored.decoded(Rule.self), EntityTag(of: stored.body.utf8), try PolicyNames(of: tenant, in: transaction),
        try transaction.appsInForce(tenant: tenant)
      )
    }
    return ConsolePage("Rule \(rule.id)", in: .rules) {
      Tag.div(.id("live-rule"), .data(.live, "")) {
        Tag.section(.class("panel"), .aria(.labelledby, "says")) {
          Tag.h2(.id("says")) { "What it says" }
          Tag.p {
            RuleTable.badge(rule)
            " \(RuleWords(names).sentence(rule))"
          }
          Tag.p {
            Tag.a(.href(RuleQuestion(rule: rule, apps: apps, now: visit.now).link(by: nil))) {
              "Ask the simulator about a case that it is about"
            }
          }
        }
      }
      if visit.may(.changePolicy) {
        Tag.section(.class("panel"), .aria(.labelledby, "change")) {
          Tag.h2(.id("change")) { "Change it" }
          RuleForm(form: Form(visit, "/console/rules/\(rule.id)/change"), names: names, rule: rule).html(
            button: "Save, it holds at once", then: ["draft": "Put the change into a draft to try it first"], match: tag
          )
        }
        Tag.section(.class("panel"), .aria(.labelledby, "remove")) {
          Tag.h2(.id("remove")) { "Remove it" }
          Tag.p {
            rule.effect == .forbid
              ? "What only this rule forbids is allowed again, as far as approvals and settings allow it."
              : "What only this rule permits is refused again."
          }
          Form(visit, "/console/rules/\(rule.id)/remove")(
            "Remove the rule, it ends at once", then: ["draft": "Remove it in a draft to try that first"], match: tag,
            style: "danger"
          ) {}
        }
      }
    }
  }

  @Sendable private func addRule(_ visit: Visit) async throws -> Outcome {
    let body = try RuleForm.body(visit)
    if visit.isForDraft { return try await prepareRule(visit.asking(body).json(Rule.self), in: nil, visit) }
    let rule = try await ruleRoutes.make(visit.asking(body), visit.caller()).decoded(Rule.self)
    return .see("/console/rules/\(rule.id)", .ruleAdded)
  }

  @Sendable private func changeRule(_ visit: Visit) async throws -> Outcome {
    let (id, body) = (try visit.call.name(), try RuleForm.body(visit))
    if visit.isForDraft { return try await prepareRule(visit.asking(body).json(Rule.self), in: id, visit) }
    _ = try await ruleRoutes.replace(visit.asking(body), visit.caller())
    return .see("/console/rules/\(id)", .ruleChanged)
  }

  @Sendable private func removeRule(_ visit: Visit) async throws -> Outcome {
    if visit.isForDraft { return try await prepareRule(nil, in: visit.call.name(), visit) }
    _ = try await ruleRoutes.remove(visit.asking(), visit.caller())
    return .see("/console/rules", .ruleRemoved)
  }

  /// Another rule in place of the one of this id, a new one, or none.
  private func prepareRule(_ rule: Rule?, in id: String?, _ visit: Visit) async throws -> Outcome {
    try await prepare("Rule \(rule?.id ?? id ?? "")", visit, inPlaceOf: id.map { inForce(.rule, $0) }) {
      try $0.put(rule, in: \.rules, inPlaceOf: id)
    }
  }
}

/// Rules as lists show them.
struct RuleTable {
  let names: PolicyNames
  let caption: String

  func html(_ rules: [Rule], link: (Rule) -> Link?) -> HTML {
    DataTable.table(caption, ["Rule", "What it says"]) {
      for rule in rules {
        Tag.tr {
          DataTable.head {
            if let link = link(rule) {
              Tag.a(.href(link)) { rule.id }
            } else {
              rule.id
            }
            Self.badge(rule)
          }
          DataTable.cell("What it says", isLong: true) { RuleWords(names).sentence(rule) }
        }
      }
    }
  }

  static func badge(_ rule: Rule) -> HTML {
    Tag.span(.class("badge \(rule.effect == .permit ? "approved" : "revoked")")) {
      rule.effect == .permit ? "Permits" : "Forbids"
    }
  }
}
