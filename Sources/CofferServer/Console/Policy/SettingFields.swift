internal import CofferPolicy

/// The fields of what a company sets for all its devices, as it is in force or in a draft.
struct SettingFields {
  let form: Form

  @HTMLBuilder func owner(_ settings: Settings) -> HTML {
    form.checkboxes(
      "The person may", "ownerActions",
      Action.allCases.map { ($0.rawValue, Words.action($0).name, Words.action($0).meaning) },
      chosen: settings.ownerActions.map(\.rawValue), hint: Words.askedActions)
    form.checkbox(
      "Apps that are only a name may get files", "allowFilteredTier", settings.allowFilteredTier,
      hint:
        "The tier Filtered. Anybody can make an app with the name of another: allow it only while nothing better can "
        + "be had.")
  }

  @HTMLBuilder func grace(_ grace: Grace) -> HTML {
    duration("Warn the person", "warnAfter", grace.warnAfter)
    duration("Refuse everything", "blockAfter", grace.blockAfter)
  }

  private func duration(_ legend: String, _ name: String, _ seconds: Int64) -> HTML {
    let (count, unit) = TimeUnit.split(seconds)
    return Tag.fieldset {
      Tag.legend { legend }
      Tag.div(.class("columns")) {
        form.text("After", name, "\(count)", kind: .code)
        form.select(
          "Counted in", "\(name)Unit", TimeUnit.allCases.map { ($0.rawValue, $0.rawValue, nil) }, chosen: unit.rawValue)
      }
    }
  }

  static func owner(_ visit: Visit) throws -> Settings {
    let actions = try visit.values.all("ownerActions").map { text in
      guard let action = Action(rawValue: text) else { throw HTTPProblem.invalid("ownerActions", "has an unknown one") }
      return action
    }
    return Settings(ownerActions: actions, allowFilteredTier: visit.values.isOn("allowFilteredTier"))
  }

  static func grace(_ visit: Visit) throws -> Grace {
    func seconds(_ name: String) throws -> Int64 {
      guard let count = visit.values.text(name).flatMap({ Int64($0) }), (1...1_000_000_000).contains(count),
        let unit = TimeUnit(rawValue: visit.values.exact("\(name)Unit"))
      else { throw HTTPProblem.invalid(name, "is a whole number, and at least 1") }
      return count * unit.length
    }
    let grace = Grace(warnAfter: try seconds("warnAfter"), blockAfter: try seconds("blockAfter"))
    guard grace.warnAfter <= grace.blockAfter else {
      throw HTTPProblem.invalid("blockAfter", "is not before the warning")
    }
    guard grace.blockAfter <= Self.longestGrace else { throw HTTPProblem.invalid("blockAfter", "is at most ten years") }
    return grace
  }

  private static let longestGrace: Int64 = 3650 * 86_400
}
