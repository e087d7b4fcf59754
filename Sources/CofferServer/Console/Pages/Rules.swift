internal import CofferPolicy
internal import Foundation
internal import Hummingbird

/// Rules, and the question what would be decided.
extension Console {
  var rules: [ConsoleRoute] {
    [
      .page("/console/rules", .readPolicy, rulesPage),
      .change("/console/rules", .changePolicy, on: rulesPage, addRule),
      .change("/console/rules/:id/remove", .changePolicy, on: rulesPage, removeRule),
    ]
  }

  private var ruleRoutes: ResourceRoutes<Rule> { ResourceRoutes(server: server, path: "/v1/rules") }

  private struct Written: Sendable {
    let rules: [(rule: Rule, tag: EntityTag)]
    let content: PolicyContent
    let apps: [AppRecord]
    let groups: [String]
  }

  private func written(_ tenant: String) async throws -> Written {
    try await store.read { transaction in
      Written(
        rules: try transaction.resources(.rule, tenant: tenant).map {
          (try $0.decoded(Rule.self), EntityTag(of: $0.body.utf8))
        },
        content: try PolicyContent(of: server.found(transaction.tenant(id: tenant)), in: transaction),
        apps: try transaction.appRecords(tenant: tenant, after: 0, limit: 500).map(\.value),
        groups: try transaction.resources(.group, tenant: tenant).map(\.id))
    }
  }

  @Sendable private func rulesPage(_ visit: Visit) async throws -> ConsolePage {
    let written = try await written(visit.person().administrator.tenant)
    let simulator = Simulator(visit: visit, apps: written.apps, groups: written.groups, content: written.content)
    let answer = try await simulator.ask(server)
    return ConsolePage("Rules", in: .rules) {
      Tag.p {
        "Nothing is let out unless something allows it: an app’s approval, the settings, or a rule that permits. A rule "
          + "that forbids always wins. The order of rules does not matter."
      }
      simulator.html(answer)
      Tag.section(.class("panel"), .aria(.labelledby, "rules")) {
        Tag.h2(.id("rules")) { "Rules in force" }
        Tag.div(.id("live-rules"), .data(.live, "")) {
          if written.rules.isEmpty {
            Tag.p(.class("empty")) {
              "There is no rule, and none is needed to begin: approvals and settings decide alone. Add one to forbid "
                + "something to everybody, or to allow approved apps more under a condition."
            }
          } else {
            DataTable.table("Rules", ["Rule", "What it says", "Remove"]) {
              for (rule, tag) in written.rules { row(rule, tag, visit) }
            }
          }
        }
      }
      if visit.may(.changePolicy) { RuleForm(form: Form(visit, "/console/rules"), written.apps, written.groups).html }
    }
  }

  private func row(_ rule: Rule, _ tag: EntityTag, _ visit: Visit) -> HTML {
    Tag.tr(.id("rule-\(rule.id)")) {
      DataTable.head {
        rule.id
        Tag.span(.class("badge \(rule.effect == .permit ? "approved" : "revoked")")) {
          rule.effect == .permit ? "Permits" : "Forbids"
        }
      }
      DataTable.cell("What it says") { RuleWords.sentence(rule) }
      DataTable.cell("Remove") {
        if visit.may(.changePolicy) {
          let form = Form(visit, "/console/rules/\(rule.id)/remove")
          form("Remove “\(rule.id)”", match: tag, style: "plain") {}
        } else {
          "–"
        }
      }
    }
  }

  @Sendable private func addRule(_ visit: Visit) async throws -> Outcome {
    _ = try await ruleRoutes.make(visit.asking(RuleForm.body(visit)), visit.caller())
    return .see("/console/rules", .ruleAdded)
  }

  @Sendable private func removeRule(_ visit: Visit) async throws -> Outcome {
    _ = try await ruleRoutes.remove(visit.asking(), visit.caller())
    return .see("/console/rules", .ruleRemoved)
  }
}
