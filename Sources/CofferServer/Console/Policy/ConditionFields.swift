internal import CofferPolicy

/// The conditions of a rule as fields of a form. Each kind has a place, and one more when the rule has one of it: a
/// place that is left open is no condition. What a rule has, the form shows, so that saving it loses nothing.
struct ConditionFields {
  let form: Form
  let conditions: [Condition]
  let groups: [DeviceGroup]

  var html: HTML {
    Tag.div(.id(form.id("conditions"))) {
      places(0) {
        isUnlocked($0)
      } field: {
        unlocked($0, $1)
      }
      places(1) {
        range($0, ofApp: false) != nil
      } field: {
        versions($0, $1, ofApp: false)
      }
      places(1) {
        range($0, ofApp: true) != nil
      } field: {
        versions($0, $1, ofApp: true)
      }
      places(0) {
        level($0) != nil
      } field: {
        protection($0, $1)
      }
      places(1) {
        window($0) != nil
      } field: {
        hours($0, $1)
      }
      places(0) {
        age($0) != nil
      } field: {
        age($0, $1)
      }
      if !groups.isEmpty || conditions.contains(where: { group($0) != nil }) {
        places(1) {
          group($0) != nil
        } field: {
          group($0, $1)
        }
      }
    }
  }

  /// - Parameter spare: open places beyond what the rule has, when it has one.
  @HTMLBuilder private func places(
    _ spare: Int, _ isKind: (Condition?) -> Bool, field: (Int, Condition?) -> HTML
  ) -> HTML {
    let own = conditions.filter { isKind($0) }
    let count = own.isEmpty ? 1 : own.count + spare
    for number in 0..<min(count, FormConditions.maximum) { field(number, number < own.count ? own[number] : nil) }
  }

  private func isUnlocked(_ condition: Condition?) -> Bool { condition?.test == .deviceUnlocked }

  private func age(_ condition: Condition?) -> Int64? {
    if case .policyAgeAtMost(let seconds)? = condition?.test { seconds } else { nil }
  }

  private func range(_ condition: Condition?, ofApp: Bool) -> VersionRange? {
    switch condition?.test {
    case .osVersion(let range)?: ofApp ? nil : range
    case .appVersion(let range)?: ofApp ? range : nil
    default: nil
    }
  }

  private func level(_ condition: Condition?) -> ProtectionLevel? {
    if case .protectionAtLeast(let level)? = condition?.test { level } else { nil }
  }

  private func group(_ condition: Condition?) -> String? {
    if case .group(let group)? = condition?.test { group } else { nil }
  }

  private func window(_ condition: Condition?) -> TimeWindow? {
    if case .timeWindow(let window)? = condition?.test { window } else { nil }
  }

  private func label(_ text: String, _ number: Int) -> String { number == 0 ? text : "\(text) (\(number + 1))" }

  private func unlocked(_ number: Int, _ condition: Condition?) -> HTML {
    form.radios(
      label("The device is", number), "unlocked\(number)",
      [("", "Locked or unlocked", nil), ("yes", "Unlocked", nil), ("not", "Locked", nil)],
      chosen: condition.map { $0.isNegated ? "not" : "yes" } ?? "")
  }

  private func age(_ number: Int, _ condition: Condition?) -> HTML {
    let (count, unit) = age(condition).map { TimeUnit.split($0) } ?? (0, .hours)
    return fieldset(
      label("Time since the device heard of the server", number), "Empty: however long it is.",
      form.text("How long", "age\(number)", condition == nil ? "" : "\(count)", kind: .code, optional: true),
      form.select(
        "In", "ageUnit\(number)", TimeUnit.allCases.map { ($0.rawValue, $0.rawValue, nil) },
        chosen: unit.rawValue),
      form.select(
        "Counts", "ageIs\(number)",
        [("yes", "When it is at most that", nil), ("not", "When it is longer than that", nil)],
        chosen: chosen(condition)))
  }

  private func versions(_ number: Int, _ condition: Condition?, ofApp: Bool) -> HTML {
    let (name, range) = (ofApp ? "app" : "os", range(condition, ofApp: ofApp))
    return fieldset(
      label(ofApp ? "Version of the app" : "Version of the operating system", number),
      ofApp
        ? "Such as 2.1. Empty: every version. The device’s owner is no app." : "Such as 17.4. Empty: every version.",
      form.text("This version or newer", "\(name)From\(number)", range?.atLeast ?? "", optional: true),
      form.text("Older than", "\(name)Below\(number)", range?.below ?? "", optional: true),
      form.select(
        "Counts", "\(name)Is\(number)",
        [("yes", "When the version is so", nil), ("not", "When the version is not so", nil)],
        chosen: chosen(condition)))
  }

  private func protection(_ number: Int, _ condition: Condition?) -> HTML {
    let choices = ProtectionLevel.allCases.reversed().filter { $0 != .none }.flatMap { level -> [Form.Choice] in
      let name = Words.protection(level)
      return [
        ("yes \(level.rawValue)", "\(name), or better", nil),
        ("not \(level.rawValue)", "Less than \(name.lowercased())", nil),
      ]
    }
    let own = condition.flatMap { own in level(own).map { "\(chosen(own)) \($0.rawValue)" } }
    let rest: [Form.Choice] =
      own.map { own in choices.contains { $0.value == own } ? [] : [(own, "As it is", nil)] } ?? []
    return form.select(
      label("Protection of the file", number), "protection\(number)", [("", "Any", nil)] + choices + rest,
      chosen: own ?? "")
  }

  private func group(_ number: Int, _ condition: Condition?) -> HTML {
    var choices: [Form.Choice] = [("", "Any, or none", nil)]
    var known = groups.map { ($0.id, $0.name) }
    if let own = group(condition), !known.contains(where: { $0.0 == own }) { known.append((own, own)) }
    for (id, name) in known {
      choices.append(("yes \(id)", "Of “\(name)”", nil))
      choices.append(("not \(id)", "Not of “\(name)”", nil))
    }
    let own = condition.flatMap { own in group(own).map { "\(chosen(own)) \($0)" } }
    return form.select(label("Group of the device", number), "inGroup\(number)", choices, chosen: own ?? "")
  }

  private func hours(_ number: Int, _ condition: Condition?) -> HTML {
    let window = window(condition)
    return fieldset(
      label("Hours of the week", number), "By the company’s clock, wherever the device is. Empty: at any time.",
      form.checkboxes(
        "Days", "days\(number)", RuleWords.days.enumerated().map { ("\($0.offset + 1)", $0.element, nil) },
        chosen: (window?.days ?? []).map { "\($0)" }),
      form.text(
        "From", "from\(number)", window.map { ClockText.time($0.start) } ?? "", hint: "Such as 08:00.", optional: true),
      form.text(
        "To", "to\(number)", window.map { ClockText.time($0.end) } ?? "",
        hint: "Such as 18:00, or 24:00 for the end of the day.",
        optional: true),
      form.text(
        "The company’s clock, ahead of UTC", "offset\(number)", window.map { ClockText.offset($0.offset) } ?? "",
        hint: "Such as +01:00 or -05:00. Empty: UTC.", optional: true),
      form.select(
        "Counts", "windowIs\(number)", [("yes", "During these hours", nil), ("not", "Outside of these hours", nil)],
        chosen: chosen(condition)))
  }

  private func chosen(_ condition: Condition?) -> String { condition?.isNegated == true ? "not" : "yes" }

  private func fieldset(_ legend: String, _ hint: String, _ fields: HTML...) -> HTML {
    Tag.fieldset {
      Tag.legend { legend }
      Tag.p(.class("hint")) { hint }
      Tag.div(.class("columns")) { fields }
    }
  }
}
