internal import CofferPolicy
internal import Hummingbird

/// What the policy would decide, by the function that devices decide by. Asking changes nothing, so that the question
/// stands in the address and can be sent to somebody.
struct Simulator {
  let visit: Visit
  let apps: [AppRecord]
  let groups: [String]
  let content: PolicyContent

  struct Answer: Decodable {
    let isPermitted: Bool
    let rules: [String]
    let sentence: String
    let warning: String?
  }

  enum Result {
    case notAsked
    case answer(Answer)
    case refused(HTTPProblem)
  }

  private struct Simulation: Decodable {
    let decisions: [Answer]
  }

  func ask(_ server: PolicyServer) async throws -> Result {
    let values = visit.values
    guard visit.call.request.method == .get, let action = values.text("action") else { return .notAsked }
    func text(_ name: String) -> JSONValue? { values.text(name).map { .string($0) } }
    let app = apps.first { $0.approval.id == values.text("app") }.map { app -> JSONValue in
      .fields([
        "bundleId": .string(app.approval.bundleId), "teamId": .string(app.approval.teamId),
        "teamKey": app.approval.teamKey.map { .string($0.text) }, "version": .string(values.text("version") ?? "1"),
        "tier": .string(values.text("tier") ?? app.approval.tier.rawValue),
      ])
    }
    let days = values.text("days").flatMap { Int64($0) } ?? 0
    let question = JSONValue.fields([
      "app": app, "action": .string(action),
      "file": .fields(["extension": text("type"), "content": text("content")]),
      "groups": values.text("group").map { .texts([$0]) },
      "isDeviceUnlocked": .boolean(values.text("unlocked") != "no"),
      "policyAge": .integer(min(max(days, 0), 3650) * 86_400), "osVersion": .string(values.text("os") ?? "1"),
    ])
    do {
      let answer = try await server.simulate(
        visit.asking(.object(["requests": .array([question])])), visit.caller())
      return try await answer.decoded(Simulation.self).decisions.first.map(Result.answer) ?? .notAsked
    } catch let problem as HTTPProblem {
      return .refused(problem)
    }
  }

  func html(_ result: Result) -> HTML {
    Tag.section(.class("panel"), .id("simulate"), .aria(.labelledby, "simulate-title")) {
      Tag.h2(.id("simulate-title")) { "What would be decided?" }
      Tag.p { "Asking changes nothing. The answer is the one that a device with the newest policy gives." }
      shown(result)
      Tag.form(.get, .action("/console/rules#simulate"), .noValidate) {
        Tag.div(.class("columns")) {
          select(
            "Who asks", "app",
            [("", "The device’s owner, without an app")]
              + apps.map { ($0.approval.id, "\($0.approval.name) (\(Words.state($0.state).lowercased()))") })
          select("For what", "action", Action.allCases.map { ($0.rawValue, Words.action($0).name) })
          field("File type", "type", hint: "Such as pdf.")
          field(
            "What the content really is", "content", hint: "Such as application/pdf. Empty: what the file type says.")
          select("Is the device unlocked?", "unlocked", [("yes", "Yes"), ("no", "No")])
          field("Days since the device last heard of the server", "days", hint: "A number. Empty: none.")
          field("Version of the app", "version", hint: "Such as 2.1.")
          field("Version of the operating system", "os", hint: "Such as 17.4.")
          if !groups.isEmpty {
            select("Group of the device", "group", [("", "None")] + groups.map { ($0, $0) })
          }
        }
        Tag.p(.class("buttons")) { Tag.button(.type("submit")) { "Ask" } }
      }
    }
  }

  @HTMLBuilder private func shown(_ result: Result) -> HTML {
    switch result {
    case .notAsked: HTML.nothing
    case .refused(let problem):
      Tag.div(.class("problem"), .role("alert"), .tabIndex(-1), .data(.focus, "")) {
        Tag.p { "This cannot be asked: \(problem.detail)" }
      }
    case .answer(let answer):
      Tag.div(
        .class(answer.isPermitted ? "answer permitted" : "answer refused"), .role("status"), .tabIndex(-1),
        .data(.focus, "")
      ) {
        Tag.p { Tag.strong { answer.isPermitted ? "Permitted" : "Refused" } }
        Tag.p { answer.sentence }
        if let warning = answer.warning { Tag.p { warning } }
        Tag.p { "Decided by:" }
        Tag.ul {
          for rule in answer.rules { Tag.li { origin(rule) } }
        }
      }
    }
  }

  private func origin(_ rule: String) -> HTML {
    if rule.hasPrefix("app:"), let app = apps.first(where: { $0.approval.ruleID == rule }) {
      return Tag.a(.href("/console/apps/\(app.approval.id)")) { "the approval of \(app.approval.name)" }
    }
    if rule.hasPrefix("settings:") { return Tag.a(.href("/console/settings")) { Words.rule(rule) } }
    return .text(Words.rule(rule))
  }

  private func field(_ label: String, _ name: String, hint: String) -> HTML {
    Tag.div(.class("field")) {
      Tag.label(.for("ask-\(name)")) { "\(label) (optional)" }
      Tag.p(.class("hint"), .id("ask-\(name)-hint")) { hint }
      Tag.input(
        .id("ask-\(name)"), .name(name), .type("text"), .value(visit.values.text(name) ?? ""),
        .aria(.describedby, "ask-\(name)-hint"), .autocomplete("off"), .noSpelling)
    }
  }

  private func select(_ label: String, _ name: String, _ choices: [(value: String, label: String)]) -> HTML {
    let chosen = visit.values.text(name) ?? choices.first?.value
    return Tag.div(.class("field")) {
      Tag.label(.for("ask-\(name)")) { label }
      Tag.select(.id("ask-\(name)"), .name(name)) {
        for choice in choices {
          Tag.option(.value(choice.value), choice.value == chosen ? .selected : nil) { choice.label }
        }
      }
    }
  }
}
