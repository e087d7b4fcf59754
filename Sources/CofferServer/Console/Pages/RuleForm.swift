internal import CofferPolicy

/// A new rule, as far as a form can say it. The API takes every other kind, too.
struct RuleForm {
  let form: Form
  let apps: [AppRecord]
  let groups: [String]

  init(form: Form, _ apps: [AppRecord], _ groups: [String]) {
    self.form = form
    self.apps = apps
    self.groups = groups
  }

  var html: HTML {
    Tag.section(.class("panel"), .id("add"), .aria(.labelledby, "add-title")) {
      Tag.h2(.id("add-title")) { "Add a rule" }
      Tag.p { "What is left open means any: a rule without apps is about every app." }
      form("Add the rule") {
        form.text("Name", "id", hint: "Decisions name the rule by it. Letters, digits, dots and hyphens: no-printing.")
        form.radios(
          "What it does", "effect",
          [
            ("forbid", "Forbid", "Refuses, whatever else allows it. It binds the device’s owner, too."),
            ("permit", "Permit", "Allows approved apps more than their approval says."),
          ], chosen: "forbid")
        form.checkboxes(
          "Actions", "actions",
          Action.allCases.map { ($0.rawValue, Words.action($0).name, Words.action($0).meaning) }, chosen: [])
        if !apps.isEmpty {
          form.checkboxes(
            "Apps", "apps",
            apps.map { ("\($0.approval.bundleId) \($0.approval.teamId)", $0.approval.name, $0.approval.bundleId) },
            chosen: [])
        }
        form.text("File types", "extensions", hint: "With spaces between them, such as pdf docx.", optional: true)
        if !groups.isEmpty { form.checkboxes("Groups of devices", "groups", groups.map { ($0, $0, nil) }, chosen: []) }
        form.radios(
          "The device is", "unlocked",
          [("", "locked or unlocked", nil), ("yes", "unlocked", nil), ("no", "locked", nil)], chosen: "")
        form.text(
          "Operating system older than", "osBelow", hint: "Such as 17.4. The rule is about older ones only.",
          optional: true)
      }
    }
  }

  static func body(_ visit: Visit) throws -> JSONValue {
    let values = visit.values
    func list(_ texts: [String]) -> JSONValue? { texts.isEmpty ? nil : .texts(texts) }
    let apps = values.all("apps").map { text -> JSONValue in
      let parts = text.split(separator: " ", maxSplits: 1).map(String.init)
      return .object(["bundleId": .string(parts.first ?? ""), "teamId": .string(parts.last ?? "")])
    }
    let extensions = values.list("extensions")
      .map { ($0.hasPrefix(".") ? String($0.dropFirst()) : $0).lowercased() }
    guard extensions.allSatisfy(PolicyText.isExtension) else {
      throw HTTPProblem.invalid("extensions", "are letters and digits, with spaces between the types")
    }
    var conditions: [JSONValue] = []
    switch values.exact("unlocked") {
    case "yes": conditions.append(.object(["kind": .string("deviceUnlocked")]))
    case "no": conditions.append(.object(["kind": .string("deviceUnlocked"), "not": .boolean(true)]))
    default: break
    }
    if let version = values.text("osBelow") {
      guard PolicyText.isVersion(version) else {
        throw HTTPProblem.invalid("osBelow", "is one to four numbers with dots between them")
      }
      conditions.append(.object(["kind": .string("osVersion"), "below": .string(version)]))
    }
    return .fields([
      "id": .string(values.text("id") ?? ""), "effect": .string(values.exact("effect")),
      "actions": list(values.all("actions")), "apps": apps.isEmpty ? nil : .array(apps),
      "extensions": list(extensions), "groups": list(values.all("groups")), "conditions": .array(conditions),
    ])
  }
}

/// Rules in plain words.
enum RuleWords {
  static func sentence(_ rule: Rule) -> String {
    let actions = rule.actions.map(Words.actions) ?? "every action"
    let apps = rule.apps.map { $0.map(\.bundleId).joined(separator: ", ") } ?? "every app"
    let types = rule.extensions.map { $0.map { ".\($0)" }.joined(separator: " ") } ?? "every file type"
    var text = "\(rule.effect == .permit ? "Permits" : "Forbids") \(actions); \(apps); \(types)"
    if let labels = rule.classifications { text += "; files classified \(labels.joined(separator: " or "))" }
    if let groups = rule.groups { text += "; devices of \(groups.joined(separator: " or "))" }
    for condition in rule.conditions {
      text += "; \(condition.isNegated ? "unless" : "when") \(Self.condition(condition))"
    }
    return text + "."
  }

  private static func condition(_ condition: Condition) -> String {
    switch condition.test {
    case .deviceUnlocked: "the device is unlocked"
    case .policyAgeAtMost(let seconds): "the policy was confirmed within \(seconds / 3600) hours"
    case .osVersion(let range): "the operating system is \(words(range))"
    case .appVersion(let range): "the app is \(words(range))"
    case .protectionAtLeast(let level): "the file’s protection is at least “\(Words.protection(level).lowercased())”"
    case .group(let group): "the device is of the group \(group)"
    case .timeWindow: "it is within certain hours"
    case .unknown: "something holds that this server does not know"
    }
  }

  private static func words(_ range: VersionRange) -> String {
    [range.atLeast.map { "\($0) or newer" }, range.below.map { "older than \($0)" }]
      .compactMap(\.self).joined(separator: " and ")
  }
}
