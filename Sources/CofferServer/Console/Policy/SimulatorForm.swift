internal import CofferPolicy
internal import Foundation

/// A question to the simulator, and its answer.
struct SimulatorForm: Sendable {
  let visit: Visit
  let apps: [AppRecord]
  let names: PolicyNames
  let drafts: [PolicyDraft]

  /// Which policy is asked.
  enum Source: Equatable {
    case inForce
    case draft(String)
    case revision(Int64)

    init(_ text: String?) {
      let parts = (text ?? "").split(separator: "-", maxSplits: 1).map(String.init)
      switch (parts.first, parts.last) {
      case ("draft"?, let id?) where parts.count == 2: self = .draft(id)
      case ("revision"?, let number?): self = Int64(number).map { .revision($0) } ?? .inForce
      default: self = .inForce
      }
    }

    /// As the address has it.
    var text: String {
      switch self {
      case .inForce: ""
      case .draft(let id): "draft-\(id)"
      case .revision(let number): "revision-\(number)"
      }
    }

    func name(_ drafts: [PolicyDraft]) -> String {
      switch self {
      case .inForce: "What is in force now"
      case .draft(let id): "The draft “\(drafts.first { $0.id == id }?.title ?? id)”"
      case .revision(let number): "Revision \(number)"
      }
    }
  }

  struct Answer: Decodable {
    let isPermitted: Bool
    let rules: [String]
    let sentence: String
    let warning: String?
  }

  enum Result {
    case answer(Answer)
    case refused(HTTPProblem)
  }

  var source: Source { Source(visit.values.text("by")) }

  /// Nil while nothing is asked. Throws a problem that names the field that cannot be understood.
  func question() throws -> JSONValue? {
    let values = visit.values
    guard let action = values.text("action") else { return nil }
    func text(_ name: String) -> JSONValue? { values.text(name).map { .string($0) } }
    let chosen = apps.first { $0.approval.id == values.text("app") }
    guard chosen != nil || values.text("app") == nil else {
      throw HTTPProblem.invalid("Who asks", "is none of your apps any more")
    }
    let app = chosen.map { app -> JSONValue in
      .fields([
        "bundleId": .string(app.approval.bundleId), "teamId": .string(app.approval.teamId),
        "teamKey": app.approval.teamKey.map { .string($0.text) }, "version": .string(values.text("version") ?? "1"),
        "tier": .string(app.approval.tier.rawValue),
      ])
    }
    guard let days = values.text("days").map({ Int64($0) }) ?? 0, (0...3650).contains(days) else {
      throw HTTPProblem.invalid("days", "are a whole number up to 3650")
    }
    let time = try values.text("at").map { text in
      guard let time = SimulatorTime.seconds(text) else {
        throw HTTPProblem.invalid("When", "is a day and a time such as 2030-01-31 14:30")
      }
      return JSONValue.integer(time)
    }
    return .fields([
      "app": app, "action": .string(action),
      "file": .fields([
        "extension": text("type"), "content": text("content"), "classification": text("label"),
        "protection": text("protection"),
      ]),
      "groups": values.text("group").map { .texts([$0]) },
      "isDeviceUnlocked": .boolean(values.text("unlocked") != "no"),
      "policyAge": .integer(days * 86_400), "osVersion": .string(values.text("os") ?? "1"),
      "time": time,
    ])
  }

  var html: HTML {
    Tag.section(.class("panel"), .id("simulate"), .aria(.labelledby, "simulate-title")) {
      Tag.h2(.id("simulate-title")) { "The case" }
      Tag.form(.get, .action("/console/simulator"), .noValidate) {
        Tag.div(.class("columns")) {
          select("By which policy", "by", sources)
          select(
            "Who asks", "app",
            [("", "The device’s owner, without an app")]
              + apps.map { ($0.approval.id, "\($0.approval.name) (\(Words.state($0.state).lowercased()))") })
          select("For what", "action", Action.allCases.map { ($0.rawValue, Words.action($0).name) })
          field("File type", "type", hint: "Such as pdf.")
          field(
            "What the content really is", "content", hint: "Such as application/pdf. Empty: what the file type says.")
          if !names.classifications.isEmpty {
            select(
              "Classification of the file", "label",
              [("", "None")] + names.classifications.map { ($0.id, $0.name) })
          }
          select(
            "Protection of the file", "protection",
            ProtectionLevel.allCases.reversed().map { ($0.rawValue, Words.protection($0)) })
          select("Is the device unlocked?", "unlocked", [("yes", "Yes"), ("no", "No")])
          if !names.groups.isEmpty {
            select("Group of the device", "group", [("", "None")] + names.groups.map { ($0.id, $0.name) })
          }
          field("Days since the device last heard of the server", "days", hint: "A number. Empty: none.")
          field("Version of the app", "version", hint: "Such as 2.1. Empty: 1.")
          field("Version of the operating system", "os", hint: "Such as 17.4. Empty: 1.")
          field("When, in UTC", "at", hint: "Such as 2030-01-31 14:30. Empty: now.")
        }
        Tag.p(.class("buttons")) { Tag.button(.type("submit")) { "Ask" } }
      }
    }
  }

  private var sources: [(value: String, label: String)] {
    var all = [Source.inForce] + drafts.map { .draft($0.id) }
    if case .revision = source { all.append(source) }
    return all.map { ($0.text, $0.name(drafts)) }
  }

  /// - Parameter title: which policy it is of, when there is more than one.
  @HTMLBuilder func shown(_ result: Result, as title: String?, isSecond: Bool = false) -> HTML {
    let focus = isSecond ? nil : Attribute.data(.focus, "")
    switch result {
    case .refused(let problem):
      Tag.div(.class("problem"), .role("alert"), .tabIndex(-1), focus) {
        if let title { Tag.h2 { title } }
        Tag.p { "This cannot be asked: \(problem.detail)" }
      }
    case .answer(let answer):
      Tag.div(
        .class(answer.isPermitted ? "answer permitted" : "answer refused"), .role("status"), .tabIndex(-1), focus
      ) {
        if let title { Tag.h2 { title } }
        Tag.p { Tag.strong { answer.isPermitted ? "Permitted" : "Refused" } }
        Tag.p { "The person reads: “\(answer.sentence)”" }
        if let warning = answer.warning { Tag.p { "And: “\(warning)”" } }
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
    let isOwn = !["default", "grace", "content"].contains(rule) && !rule.contains(":") && !PolicyContent.isOwn(rule)
    // A rule of a draft or of an earlier revision need not be among those in force.
    if isOwn && source == .inForce { return Tag.a(.href("/console/rules/\(rule)")) { Words.rule(rule) } }
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

/// A moment as the simulator's form has it.
enum SimulatorTime {
  static func text(_ seconds: Int64) -> String {
    let text = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
    return "\(text.prefix(10)) \(text.dropFirst(11).prefix(5))"
  }

  /// Seconds since 1970; nil for another text.
  static func seconds(_ text: String) -> Int64? {
    let parts = text.split(separator: " ")
    guard parts.count == 2, let date = try? Date("\(parts[0])T\(parts[1]):00Z", strategy: .iso8601) else { return nil }
    return Int64(date.timeIntervalSince1970)
  }
}
