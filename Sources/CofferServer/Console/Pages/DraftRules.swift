internal import CofferPolicy
internal import Hummingbird

/// The rules of a draft.
extension Console {
  var draftRules: [ConsoleRoute] {
    [
      .page("/console/drafts/:id/rule", .changePolicy, draftRulePage),
      .change("/console/drafts/:id/rule", .changePolicy, on: draftRulePage, saveDraftRule),
      .change("/console/drafts/:id/rule/remove", .changePolicy, on: draftRulePage, removeDraftRule),
    ]
  }

  /// The rule that the query or the form names, or a new one.
  @Sendable private func draftRulePage(_ visit: Visit) async throws -> ConsolePage {
    let shown = try await shownDraft(visit)
    let id = visit.values.text("rule")
    let rule = shown.draft.content.rules.first { $0.id == id }
    if id != nil && rule == nil { throw HTTPProblem.notFound }
    let form = Form(visit, "/console/drafts/\(shown.draft.id)/rule")
    return ConsolePage(rule.map { "Rule \($0.id) of a draft" } ?? "Add a rule to a draft", in: .drafts) {
      Tag.p {
        "This is about the draft "
        Tag.a(.href("/console/drafts/\(shown.draft.id)")) { "“\(shown.draft.title)”" }
        ". Nothing of it holds until it is published."
      }
      if let rule {
        Tag.p {
          RuleTable.badge(rule)
          " \(RuleWords(shown.names).sentence(rule)) "
          Tag.a(
            .href(
              RuleQuestion(rule: rule, apps: shown.apps, now: visit.now).link(by: "draft-\(shown.draft.id)"))
          ) { "Ask the simulator about a case that it is about" }
        }
      }
      Tag.section(.class("panel"), .aria(.labelledby, "rule")) {
        Tag.h2(.id("rule")) { rule == nil ? "The rule" : "Change it" }
        RuleForm(form: form, names: shown.names, rule: rule).html(
          button: rule == nil ? "Add the rule to the draft" : "Save the rule in the draft", match: shown.tag
        ) {
          if let rule { form.hidden("rule", rule.id) }
        }
      }
      if let rule {
        let remove = Form(visit, "/console/drafts/\(shown.draft.id)/rule/remove")
        remove("Remove the rule from the draft", match: shown.tag, style: "danger") {
          remove.hidden("rule", rule.id)
        }
      }
    }
  }

  @Sendable private func saveDraftRule(_ visit: Visit) async throws -> Outcome {
    let rule = try visit.asking(RuleForm.body(visit)).json(Rule.self)
    return try await changeDraft(visit) { try $0.put(rule, in: \.rules, inPlaceOf: visit.values.text("rule")) }
  }

  @Sendable private func removeDraftRule(_ visit: Visit) async throws -> Outcome {
    guard let id = visit.values.text("rule") else { throw HTTPProblem.notFound }
    return try await changeDraft(visit) { try $0.put(nil, in: \.rules, inPlaceOf: id) }
  }

  /// The form's tag is that of the draft whose content is changed here: the API refuses when it is another by now.
  func changeDraft(_ visit: Visit, _ body: (inout PolicyContent) throws -> Void) async throws -> Outcome {
    var draft = try await shownDraft(visit).draft
    try body(&draft.content)
    let content: JSONValue = .object(["content": try JSONValue(encoding: draft.content)])
    _ = try await server.changeDraft(visit.asking(content), visit.caller())
    return .see("/console/drafts/\(draft.id)", .draftChanged)
  }
}
