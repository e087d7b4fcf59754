import CofferPolicy
import Foundation

/// The decision a second time, written from the description alone and as plainly as possible. It shares no code with
/// the product, and knows only the small universe of the random tests.
enum NaiveDecision {
  struct Answer: Hashable {
    var permitted: Bool
    var rules: Set<String>
  }

  private struct CannotTell: Error {}

  static func decide(_ request: Request, _ policy: Policy, _ context: DecisionContext) -> Answer {
    if context.policyAge > policy.grace.blockAfter { return Answer(permitted: false, rules: ["grace"]) }
    if case .app = request.actor, let file = request.file, !belongsTogether(file.content) {
      return Answer(permitted: false, rules: ["content"])
    }
    var denying: Set<String> = []
    for rule in policy.rules where rule.effect == .forbid {
      do {
        if try applies(rule, request, context) { denying.insert(rule.id) }
      } catch {
        denying.insert(rule.id)
      }
    }
    if !denying.isEmpty { return Answer(permitted: false, rules: denying) }
    if let label = request.file?.classification, !policy.classifications.map(\.id).contains(label) {
      return Answer(permitted: false, rules: ["default"])
    }
    guard case .app(let app) = request.actor else {
      return Answer(
        permitted: policy.settings.ownerActions.contains(request.action), rules: ["settings:ownerActions"])
    }
    return decide(app, request, policy, context)
  }

  private static func decide(
    _ app: RequestingApp, _ request: Request, _ policy: Policy, _ context: DecisionContext
  ) -> Answer {
    var named: Set<String> = []
    var keyed: Set<String> = []
    var held: Set<String> = []
    var permits: Set<String> = []
    for approval in policy.apps {
      guard approval.bundleId == app.identity.bundleId, approval.teamId == app.identity.teamId else { continue }
      named.insert("app:" + approval.id)
      if let key = approval.teamKey, key != app.teamKey { continue }
      keyed.insert("app:" + approval.id)
      let strengths: [Tier: Int] = [.filtered: 1, .mediated: 2, .enforced: 3]
      if strengths[app.tier]! < strengths[approval.tier]! { continue }
      if approval.tier == .filtered && !policy.settings.allowFilteredTier { continue }
      held.insert("app:" + approval.id)
      guard approval.actions.contains(request.action), let file = request.file else { continue }
      if let own = file.content.fileExtension, approval.extensions.contains(own) {
        permits.insert("app:" + approval.id)
      }
    }
    if named.isEmpty { return Answer(permitted: false, rules: ["default"]) }
    if keyed.isEmpty { return Answer(permitted: false, rules: named) }
    if held.isEmpty { return Answer(permitted: false, rules: keyed) }
    for rule in policy.rules where rule.effect == .permit {
      if (try? applies(rule, request, context)) == true { permits.insert(rule.id) }
    }
    return permits.isEmpty ? Answer(permitted: false, rules: held) : Answer(permitted: true, rules: permits)
  }

  /// True, false, or it cannot be told; one certain *no* settles it.
  private static func applies(_ rule: Rule, _ request: Request, _ context: DecisionContext) throws -> Bool {
    if let actions = rule.actions, !actions.contains(request.action) { return false }
    if let apps = rule.apps {
      guard case .app(let app) = request.actor, apps.contains(app.identity) else { return false }
    }
    var answers: [Bool?] = []
    if let groups = rule.groups {
      answers.append(request.principal.groups.map { own in groups.contains { own.contains($0) } })
    }
    if let labels = rule.classifications {
      answers.append(request.file.map { labels.contains($0.classification ?? "no such label") })
    }
    if let extensions = rule.extensions {
      if let file = request.file, belongsTogether(file.content) {
        answers.append(extensions.contains(file.content.fileExtension!))
      } else {
        answers.append(nil)
      }
    }
    for condition in rule.conditions {
      let answer = try? holds(condition.test, request, context)
      answers.append(answer.map { condition.isNegated ? !$0 : $0 })
    }
    if answers.contains(false) { return false }
    if answers.contains(nil) { throw CannotTell() }
    return true
  }

  private static func holds(_ test: Condition.Test, _ request: Request, _ context: DecisionContext) throws -> Bool {
    switch test {
    case .deviceUnlocked: return context.isDeviceUnlocked
    case .policyAgeAtMost(let limit):
      if limit < 0 { throw CannotTell() }
      return context.policyAge <= limit
    case .osVersion(let range): return try inside(context.osVersion, range)
    case .appVersion(let range):
      guard case .app(let app) = request.actor else { return false }
      return try inside(app.version, range)
    case .protectionAtLeast(let level):
      guard let file = request.file else { throw CannotTell() }
      let order: [ProtectionLevel] = [.none, .untilFirstUnlock, .completeUnlessOpen, .complete]
      return order.firstIndex(of: file.protection)! >= order.firstIndex(of: level)!
    case .group(let group):
      guard let groups = request.principal.groups else { throw CannotTell() }
      return groups.contains(group)
    case .timeWindow(let window): return try inside(context.now, window)
    case .unknown: throw CannotTell()
    }
  }

  private static func inside(_ time: Int64, _ window: TimeWindow) throws -> Bool {
    guard !window.days.isEmpty, window.start >= 0, window.end <= 1440, window.start < window.end,
      abs(window.offset) <= 840
    else { throw CannotTell() }
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = TimeZone(secondsFromGMT: window.offset * 60)!
    let parts = calendar.dateComponents([.weekday, .hour, .minute], from: Date(timeIntervalSince1970: Double(time)))
    let isoDay = parts.weekday == 1 ? 7 : parts.weekday! - 1
    let minute = parts.hour! * 60 + parts.minute!
    return window.days.contains(isoDay) && minute >= window.start && minute < window.end
  }

  private static func inside(_ text: String, _ range: VersionRange) throws -> Bool {
    if range.atLeast == nil && range.below == nil { throw CannotTell() }
    // Each number is padded to ten digits: then versions compare as text.
    func padded(_ text: String) throws -> String {
      guard text.wholeMatch(of: /[0-9]{1,9}(\.[0-9]{1,9}){0,3}/) != nil else { throw CannotTell() }
      var numbers = text.split(separator: ".").map { String(repeating: "0", count: 10 - $0.count) + $0 }
      while numbers.count < 4 { numbers.append("0000000000") }
      return numbers.joined(separator: ".")
    }
    let value = try padded(text)
    let lower = try range.atLeast.map(padded)
    let upper = try range.below.map(padded)
    if let lower, value < lower { return false }
    if let upper, value >= upper { return false }
    return true
  }

  private static func belongsTogether(_ content: ContentType) -> Bool {
    switch (content.fileExtension, content.sniffed) {
    case ("pdf", "application/pdf"), ("csv", "text/plain"), ("dwg", "image/vnd.dwg"): true
    default: false
    }
  }
}
