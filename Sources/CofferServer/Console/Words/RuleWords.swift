internal import CofferPolicy

/// Rules in plain words.
struct RuleWords {
  let names: PolicyNames

  init(_ names: PolicyNames) { self.names = names }

  /// One sentence with everything that the rule says.
  func sentence(_ rule: Rule) -> String {
    var parts = [start(rule)]
    if rule.extensions != nil || rule.classifications != nil { parts.append(files(rule)) }
    if let groups = rule.groups {
      parts.append("on devices of \(Self.list(groups.map { "“\(names.group($0))”" }, "or"))")
    }
    return (parts + rule.conditions.map(condition)).joined(separator: ", ") + "."
  }

  private func start(_ rule: Rule) -> String {
    let actions = rule.actions.map { Self.list($0.map { Words.action($0).name.lowercased() }, "and") } ?? "every action"
    let apps = rule.apps.map { Self.list($0.map(names.app), "and") }
    switch rule.effect {
    case .forbid: return "Forbids \(actions) to \(apps ?? "every app and the device’s owner")"
    case .permit: return "Permits \(actions) to \(apps.map { "\($0), if approved" } ?? "every approved app")"
    }
  }

  private func files(_ rule: Rule) -> String {
    let types = rule.extensions.map { "of \(Self.list($0.map { ".\($0)" }, "or")) files" } ?? "of files"
    guard let labels = rule.classifications else { return types }
    return "\(types) classified \(Self.list(labels.map { "“\(names.classification($0))”" }, "or"))"
  }

  func condition(_ condition: Condition) -> String {
    let isNot = condition.isNegated
    switch condition.test {
    case .deviceUnlocked: return "while the device is \(isNot ? "locked" : "unlocked")"
    case .policyAgeAtMost(let seconds):
      return isNot
        ? "when the device has not heard of the server for more than \(Self.duration(seconds))"
        : "when the device has heard of the server within \(Self.duration(seconds))"
    case .osVersion(let range): return "\(isNot ? "unless" : "when") the operating system is \(Self.words(range))"
    case .appVersion(let range): return "\(isNot ? "unless" : "when") the app’s version is \(Self.words(range))"
    case .protectionAtLeast(let level):
      let name = "“\(Words.protection(level).lowercased())”"
      return isNot ? "for files protected less than \(name)" : "for files protected \(name) or better"
    case .group(let group): return "on devices that are \(isNot ? "not " : "")of “\(names.group(group))”"
    case .timeWindow(let window): return "\(isNot ? "outside of" : "on") \(Self.words(window))"
    case .unknown: return "when something holds that this server does not know"
    }
  }

  private static func words(_ range: VersionRange) -> String {
    switch (range.atLeast, range.below) {
    case (let low?, let high?): "\(low) or newer, but older than \(high)"
    case (let low?, nil): "\(low) or newer"
    case (nil, let high?): "older than \(high)"
    case (nil, nil): "of no version"
    }
  }

  static let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

  static func words(_ window: TimeWindow) -> String {
    // Stored before such were refused.
    guard window.isWellFormed else { return "hours that are none, so that what it is about is refused" }
    let days = Set(window.days).sorted().filter { (1...7).contains($0) }
    let names = days.map { Self.days[$0 - 1] }
    let isRun = days.count > 2 && days.last.map { $0 - days[0] + 1 == days.count } == true
    let text = days.count == 7 ? "every day" : isRun ? "\(names[0]) to \(names[names.count - 1])" : list(names, "and")
    return "\(text) from \(ClockText.time(window.start)) to \(ClockText.time(window.end)) "
      + (window.offset == 0 ? "UTC" : "UTC\(ClockText.offset(window.offset))")
  }

  /// In the largest unit that it is a whole number of.
  static func duration(_ seconds: Int64) -> String {
    let (count, unit) = TimeUnit.split(seconds)
    return "\(count) \(count == 1 ? String(unit.rawValue.dropLast()) : unit.rawValue)"
  }

  static func list(_ texts: [String], _ word: String) -> String {
    guard texts.count > 1, let last = texts.last else { return texts.first ?? "nothing" }
    return "\(texts.dropLast().joined(separator: ", ")) \(word) \(last)"
  }
}

/// What people count time in.
enum TimeUnit: String, CaseIterable {
  case days, hours, minutes, seconds

  var length: Int64 {
    switch self {
    case .days: 86_400
    case .hours: 3600
    case .minutes: 60
    case .seconds: 1
    }
  }

  static func split(_ seconds: Int64) -> (count: Int64, unit: TimeUnit) {
    let unit = seconds == 0 ? .hours : allCases.first { seconds.isMultiple(of: $0.length) } ?? .seconds
    return (seconds / unit.length, unit)
  }
}

/// Minutes of a day, and distances from UTC, as people write them.
enum ClockText {
  static func time(_ minutes: Int) -> String { "\(two(minutes / 60)):\(two(minutes % 60))" }

  static func offset(_ minutes: Int) -> String {
    "\(minutes < 0 ? "-" : "+")\(time(Int(clamping: minutes.magnitude)))"
  }

  /// Minutes after midnight, from 00:00 to 24:00; nil for another text.
  static func minutes(_ text: String) -> Int? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, let hours = number(parts[0]), let minutes = number(parts[1]), minutes < 60,
      hours * 60 + minutes <= 1440
    else { return nil }
    return hours * 60 + minutes
  }

  /// Minutes ahead of UTC, from -14:00 to +14:00; nil for another text.
  static func offset(_ text: String) -> Int? {
    guard let sign = text.first, "+-".contains(sign), let minutes = minutes(String(text.dropFirst())), minutes <= 840
    else { return nil }
    return sign == "-" ? -minutes : minutes
  }

  private static func number(_ text: Substring) -> Int? {
    (1...2).contains(text.utf8.count) && text.utf8.allSatisfy { (48...57).contains($0) } ? Int(text) : nil
  }

  private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
