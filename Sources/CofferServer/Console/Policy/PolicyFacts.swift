internal import CofferPolicy

/// What a policy says beside its rules and apps, as a list: of a revision or of a draft.
enum PolicyFacts {
  @HTMLBuilder static func settings(_ content: PolicyContent) -> HTML {
    Tag.dl {
      Facts.fact("The person may") { Words.actions(content.settings.ownerActions) }
      Facts.fact("Apps that are only a name") { content.settings.allowFilteredTier ? "may get files" : "get nothing" }
      Facts.fact("Without news") { "A device \(SettingWords.value(content.grace))." }
    }
    managed(content.settings.managed ?? [:])
  }

  static func managed(_ values: [String: JSONValue]) -> HTML {
    if values.isEmpty { return Tag.p(.class("empty")) { "It sets nothing else on devices." } }
    return Tag.dl {
      for key in ManagedSettings.Key.allCases {
        if let value = values[key.rawValue] {
          Facts.fact(SettingWords.name(key)) { SettingWords.value(key.rawValue, value) }
        }
      }
      // Of a policy that an older or a newer version signed.
      for (name, value) in values.sorted(by: { $0.key < $1.key }) {
        if ManagedSettings.Key(rawValue: name) == nil { Facts.fact(name) { SettingWords.value(name, value) } }
      }
    }
  }
}
