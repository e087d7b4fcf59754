internal import CofferPolicy

/// Reads what ``ConditionFields`` asks. Whatever is half said is refused: a rule never says less than its form did.
struct FormConditions {
  /// Of each kind.
  static let maximum = 20

  let values: FormValues

  func all() throws -> [JSONValue] {
    var all: [JSONValue] = []
    for number in 0..<Self.maximum {
      let found = try [
        unlocked(number), versions("os", .string("osVersion"), number), versions("app", .string("appVersion"), number),
        protection(number), hours(number), age(number), group(number),
      ]
      all += found.compactMap { $0 }
    }
    return all
  }

  private func condition(_ isNegated: Bool, _ fields: [String: JSONValue]) -> JSONValue {
    .object(isNegated ? fields.merging(["not": .boolean(true)]) { own, _ in own } : fields)
  }

  private func isNot(_ name: String) -> Bool { values.exact(name) == "not" }

  private func unlocked(_ number: Int) -> JSONValue? {
    let value = values.exact("unlocked\(number)")
    return value.isEmpty ? nil : condition(value == "not", ["kind": .string("deviceUnlocked")])
  }

  private func age(_ number: Int) throws -> JSONValue? {
    guard let text = values.text("age\(number)") else { return nil }
    guard let count = Int64(text), (0...1_000_000_000).contains(count),
      let unit = TimeUnit(rawValue: values.exact("ageUnit\(number)"))
    else { throw HTTPProblem.invalid("age\(number)", "is a whole number") }
    return condition(
      isNot("ageIs\(number)"), ["kind": .string("policyAgeAtMost"), "seconds": .integer(count * unit.length)])
  }

  private func versions(_ name: String, _ kind: JSONValue, _ number: Int) throws -> JSONValue? {
    var fields = ["kind": kind]
    for (field, bound) in [("\(name)From\(number)", "atLeast"), ("\(name)Below\(number)", "below")] {
      guard let version = values.text(field) else { continue }
      guard PolicyText.isVersion(version) else {
        throw HTTPProblem.invalid(field, "is one to four numbers with dots between them")
      }
      fields[bound] = .string(version)
    }
    return fields.count == 1 ? nil : condition(isNot("\(name)Is\(number)"), fields)
  }

  /// A choice such as `not complete`.
  private func choice(_ name: String) throws -> (isNegated: Bool, value: JSONValue)? {
    guard let text = values.text(name) else { return nil }
    let parts = text.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, ["yes", "not"].contains(parts[0]) else {
      throw HTTPProblem.invalid(name, "is none of the choices")
    }
    return (parts[0] == "not", .string(String(parts[1])))
  }

  private func protection(_ number: Int) throws -> JSONValue? {
    try choice("protection\(number)").map {
      condition($0.isNegated, ["kind": .string("protectionAtLeast"), "level": $0.value])
    }
  }

  private func group(_ number: Int) throws -> JSONValue? {
    try choice("inGroup\(number)").map { condition($0.isNegated, ["kind": .string("group"), "group": $0.value]) }
  }

  private func hours(_ number: Int) throws -> JSONValue? {
    let (days, from, to) = (values.all("days\(number)"), values.text("from\(number)"), values.text("to\(number)"))
    let offset = values.text("offset\(number)")
    if days.isEmpty && from == nil && to == nil && offset == nil { return nil }
    let numbers = days.compactMap { Int64($0) }
    guard !days.isEmpty, numbers.count == days.count, numbers.allSatisfy({ (1...7).contains($0) }) else {
      throw HTTPProblem.invalid("days\(number)", "are missing: choose at least one")
    }
    guard let start = from.flatMap(ClockText.minutes) else {
      throw HTTPProblem.invalid("from\(number)", "is a time such as 08:00")
    }
    guard let end = to.flatMap(ClockText.minutes) else {
      throw HTTPProblem.invalid("to\(number)", "is a time such as 18:00, or 24:00")
    }
    guard start < end else {
      throw HTTPProblem.invalid(
        "to\(number)", "is later than “From”. For a night, take the day and “Outside of these hours”")
    }
    guard let offset = offset.map({ ClockText.offset($0) }) ?? .some(0) else {
      throw HTTPProblem.invalid("offset\(number)", "is such as +01:00, between -14:00 and +14:00")
    }
    let window: JSONValue = .object([
      "days": .array(numbers.map { .integer($0) }), "start": .integer(Int64(start)), "end": .integer(Int64(end)),
      "offset": .integer(Int64(offset)),
    ])
    return condition(isNot("windowIs\(number)"), ["kind": .string("timeWindow"), "window": window])
  }
}
