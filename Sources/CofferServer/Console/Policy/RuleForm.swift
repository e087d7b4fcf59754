internal import CofferPolicy

/// Everything that a rule can say, as a form: for a new one, or with what a rule says now.
struct RuleForm {
  let form: Form
  let names: PolicyNames
  let rule: Rule?

  /// - Parameter then: what other buttons send as `then`.
  func html(
    button: String, then: KeyValuePairs<String, String> = [:], match: EntityTag?,
    @HTMLBuilder more: () -> HTML = { .nothing }
  ) -> HTML {
    form(button, then: then, match: match) {
      more()
      if let rule {
        form.hidden("id", rule.id)
      } else {
        form.text(
          "Name", "id", hint: "Decisions name the rule by it. Letters, digits, dots and hyphens, such as no-printing.")
      }
      form.radios(
        "What it does", "effect",
        [
          ("forbid", "Forbid", "Refuses, whatever else allows it. It binds the device’s owner, too."),
          ("permit", "Permit", "Allows approved apps more than their approval says. It admits no other app."),
        ], chosen: (rule?.effect ?? .forbid).rawValue)
      Tag.h3 { "What it is about" }
      Tag.p { "What is left open means any: a rule without apps is about every app." }
      scopes
      Tag.h3 { "When it counts" }
      Tag.p {
        "What is left open does not matter. All that is said has to hold. A rule that forbids and cannot be evaluated, "
          + "because a file’s type is not known, refuses as well."
      }
      ConditionFields(form: form, conditions: rule?.conditions ?? [], groups: names.groups).html
    }
  }

  @HTMLBuilder private var scopes: HTML {
    form.checkboxes(
      "Actions", "actions",
      Action.allCases.map { ($0.rawValue, Words.action($0).name, Words.action($0).meaning) },
      chosen: rule?.actions?.map(\.rawValue) ?? [], hint: Words.askedActions)
    let apps = apps
    if !apps.isEmpty { form.checkboxes("Apps", "apps", apps, chosen: rule?.apps?.map(Self.text) ?? []) }
    form.text(
      "File types", "extensions", (rule?.extensions ?? []).joined(separator: " "),
      hint: "With spaces between them, such as pdf docx.", optional: true)
    let labels = with(rule?.classifications, names.classifications.map { ($0.id, $0.name) })
    if !labels.isEmpty {
      form.checkboxes(
        "Classifications", "classifications", labels, chosen: rule?.classifications ?? [],
        hint: Words.withoutClassifications)
    }
    let groups = with(rule?.groups, names.groups.map { ($0.id, $0.name) })
    if !groups.isEmpty {
      form.checkboxes(
        "Groups of devices", "groups", groups, chosen: rule?.groups ?? [],
        hint: "One of them is enough. \(Words.aboutGroups)")
    }
  }

  /// The company's, and what the rule names besides.
  private var apps: [Form.Choice] {
    let other = (rule?.apps ?? []).filter { own in !names.apps.contains { $0.identity == own } }
    return names.apps.map { (Self.text($0.identity), $0.name, $0.identity.bundleId) }
      + other.map { (Self.text($0), $0.bundleId, "Of \($0.teamId). It is not among your apps.") }
  }

  private func with(_ own: [String]?, _ known: [(id: String, name: String)]) -> [Form.Choice] {
    let other = (own ?? []).filter { id in !known.contains { $0.id == id } }
    return known.map { ($0.id, $0.name, nil) } + other.map { ($0, $0, "It does not exist any more.") }
  }

  /// Neither part has a space.
  private static func text(_ app: AppIdentity) -> String { "\(app.bundleId) \(app.teamId)" }

  /// What the form says, as the API takes it.
  static func body(_ visit: Visit) throws -> JSONValue {
    let values = visit.values
    try visit.demand("id")
    func list(_ texts: [String]) -> JSONValue? { texts.isEmpty ? nil : .texts(texts) }
    let apps = values.all("apps").map { text -> JSONValue in
      let parts = text.split(separator: " ", maxSplits: 1).map(String.init)
      return .object(["bundleId": .string(parts.first ?? ""), "teamId": .string(parts.last ?? "")])
    }
    let extensions = values.list("extensions").map(extensionText)
    guard extensions.allSatisfy(PolicyText.isExtension) else {
      throw HTTPProblem.invalid("extensions", "are letters and digits, with spaces between the types")
    }
    return .fields([
      "id": .string(values.text("id") ?? ""), "effect": .string(values.exact("effect")),
      "actions": list(values.all("actions")), "apps": apps.isEmpty ? nil : .array(apps),
      "extensions": list(extensions), "classifications": list(values.all("classifications")),
      "groups": list(values.all("groups")), "conditions": .array(try FormConditions(values: values).all()),
    ])
  }

  /// As policies have it, of what somebody typed.
  static func extensionText(_ text: String) -> String {
    (text.hasPrefix(".") ? String(text.dropFirst()) : text).lowercased()
  }
}
