internal import CofferPolicy

/// What is asked of who requests an app, or changes it.
struct AppForm {
  let form: Form
  let app: AppRecord?

  private static let actions: [Form.Choice] = Action.allCases
    .filter { ![.import, .mount, .copyInternal].contains($0) }
    .map { ($0.rawValue, Words.action($0).name, Words.action($0).meaning) }

  func html(button: String, then: KeyValuePairs<String, String>, match: EntityTag?) -> HTML {
    let approval = app?.approval
    return Tag.div {
      form(button, then: then, match: match) {
        form.text("Name", "name", approval?.name ?? "", hint: "What people call the app.")
        form.text(
          "Bundle id", "bundleId", approval?.bundleId ?? "",
          hint: "Such as com.acme.editor. The app’s manifest says it, as bundleId.")
        form.text(
          "Team id", "teamId", approval?.teamId ?? "",
          hint: "Who makes the app, such as ACME. The manifest says it, as teamId.")
        form.text(
          "Team key", "teamKey", approval?.teamKey?.text ?? "",
          hint:
            "The public key that the app is signed with: teamKey in the manifest. Ask its makers whether it is theirs. "
            + "Without it the app is only a name, and gets nothing unless the settings allow that.", optional: true)
        form.text(
          "File types", "extensions", (approval?.extensions ?? []).joined(separator: " "),
          hint: "With spaces between them, such as pdf docx. Nothing else is let out.")
        form.checkboxes(
          "What the app may do", "actions", Self.actions, chosen: (approval?.actions ?? [.openIn]).map(\.rawValue),
          hint:
            "The program coffer gives files to apps by “Open in” alone. The other actions count where an app that has "
            + "Coffer built in asks for them.")
        form.radios(
          "How strongly the app is held to it, at least", "tier",
          [("", "As the team key allows", "Mediated with a team key, filtered without.")]
            + Tier.allCases.reversed().map { ($0.rawValue, Words.tier($0).name, Words.tier($0).meaning) },
          chosen: app?.approval.tier.rawValue ?? "")
        form.text(
          "Oldest version", "minimumVersion", app?.details.minimumVersion ?? "",
          hint: "Older ones get nothing. Such as 2.1.", optional: true)
        form.text(
          "Ends on", "expiresAt", app?.expiresAt.map(Words.day) ?? "", kind: .date,
          hint: "The approval ends by itself at the end of this day, UTC.", optional: true)
        form.text("Reason", "reason", app?.details.reason ?? "", hint: "Kept in the audit.", optional: true)
      }
    }
  }

  static func body(_ visit: Visit) throws -> JSONValue {
    let values = visit.values
    // An approval that gives no type of file can be made by the API, and goes on being one.
    if visit.path.hasSuffix("/change") {
      try visit.demand("name", "bundleId", "teamId")
    } else {
      try visit.demand("name", "bundleId", "teamId", "extensions")
    }
    func text(_ name: String) -> JSONValue? { values.text(name).map { .string($0) } }
    return .fields([
      "name": .string(values.text("name") ?? ""), "bundleId": .string(values.text("bundleId") ?? ""),
      "teamId": .string(values.text("teamId") ?? ""), "teamKey": text("teamKey"),
      "extensions": .texts(values.list("extensions")), "actions": .texts(values.all("actions")), "tier": text("tier"),
      "minimumVersion": text("minimumVersion"), "reason": text("reason"), "expiresAt": try end(visit),
    ])
  }

  static func reasons(_ visit: Visit) throws -> JSONValue {
    .fields(["reason": visit.values.text("reason").map { .string($0) }, "expiresAt": try end(visit)])
  }

  private static func end(_ visit: Visit) throws -> JSONValue? {
    guard let day = visit.values.text("expiresAt") else { return nil }
    guard let end = Words.endOfDay(day) else { throw HTTPProblem.invalid("expiresAt", "is not a day") }
    return .integer(end)
  }
}
