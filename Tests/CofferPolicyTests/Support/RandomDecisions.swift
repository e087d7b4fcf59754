import CofferCrypto
import CofferPolicy
import CofferTestSupport

/// Small universes, so that random policies and requests meet often.
enum Universe {
  static let keys = [SigningKey().verifyingKey, SigningKey().verifyingKey]
  static let apps = [
    AppIdentity(bundleId: "com.acme.editor", teamId: "ACME"), AppIdentity(bundleId: "com.acme.editor", teamId: "OTHER"),
    AppIdentity(bundleId: "com.acme.viewer", teamId: "ACME"),
  ]
  static let actions: [Action] = [.view, .openIn, .saveCopy, .mount]
  static let extensions = ["pdf", "docx", "csv", "dwg", "odd"]
  static let sniffed: [String?] = ["application/pdf", "text/plain", "image/vnd.dwg", "text/html", nil]
  static let labels = ["public", "secret"]
  static let groups = ["finance", "sales"]
  static let versions = ["1.0", "1.2", "1.10", "2", "2.0.0.0", "two", "", "1..2", "-1", "1.2.3.4.5"]
}

extension SeededGenerator {
  mutating func version() -> String {
    chance(85) ? pick(["1.0", "1.2", "1.10", "2", "2.0.0"]) : pick(Universe.versions)
  }

  mutating func range() -> VersionRange {
    VersionRange(atLeast: chance(60) ? version() : nil, below: chance(60) ? version() : nil)
  }

  mutating func condition() -> Condition {
    let window = TimeWindow(
      days: some([1, 2, 3, 4, 5, 6, 7], 70), start: pick([-1, 0, 480, 1000]), end: pick([480, 1080, 1440, 1441]),
      offset: pick([-300, 0, 120, 900]))
    let test: Condition.Test = pick([
      .deviceUnlocked, .policyAgeAtMost(pick([-1, 50, 150])), .osVersion(range()), .appVersion(range()),
      .protectionAtLeast(pick(ProtectionLevel.allCases)), .group(pick(Universe.groups)), .timeWindow(window),
      .unknown(.object(["kind": .string("moonPhase"), "phase": .integer(3)])),
    ])
    return Condition(test, negated: chance(30))
  }

  mutating func policy() -> Policy {
    let apps = (0..<pick([0, 1, 2, 4])).map { index in
      let key = chance(60) ? pick(Universe.keys) : nil
      return AppApproval(
        id: "a\(index)", name: "App", identity: pick(Universe.apps), teamKey: key,
        tier: key == nil ? .filtered : pick(Tier.allCases), extensions: some(Universe.extensions, 60),
        actions: some(Universe.actions, 60))
    }
    let rules = (0..<pick([0, 1, 2, 3, 5])).map { index in
      Rule(
        id: "r\(index)", effect: chance(50) ? .permit : .forbid, actions: scope(Universe.actions),
        apps: scope(Universe.apps), extensions: chance(30) ? scope(Universe.extensions) : nil,
        classifications: chance(30) ? scope(["public"]) : nil, groups: chance(30) ? scope(Universe.groups) : nil,
        conditions: (0..<pick([0, 0, 1, 2])).map { _ in condition() })
    }
    return Policy(
      tenant: "t", revision: 7, keyEpoch: 1, issuedAt: 0, notAfter: 10, prevHash: nil, apps: apps, rules: rules,
      classifications: [Classification(id: "public", name: "Public")],
      fileTypes: [FileType(extension: "dwg", mediaTypes: ["image/vnd.dwg"])],
      settings: Settings(ownerActions: some(Universe.actions, 60), allowFilteredTier: chance(50)),
      grace: Grace(warnAfter: 100, blockAfter: 200))
  }

  mutating func request() -> Request {
    let app = RequestingApp(
      identity: pick(Universe.apps), version: version(), teamKey: chance(70) ? pick(Universe.keys) : nil,
      tier: pick(Tier.allCases))
    let fits = [("pdf", "application/pdf"), ("csv", "text/plain"), ("dwg", "image/vnd.dwg")]
    let fit = pick(fits)
    let content =
      chance(60)
      ? ContentType(fileExtension: fit.0, sniffed: fit.1)
      : ContentType(fileExtension: chance(90) ? pick(Universe.extensions) : nil, sniffed: pick(Universe.sniffed))
    let file = FileFacts(
      content: content, classification: chance(30) ? pick(Universe.labels) : nil,
      protection: pick(ProtectionLevel.allCases), size: 1)
    return Request(
      actor: chance(75) ? .app(app) : .owner, action: pick(Universe.actions), file: chance(90) ? file : nil,
      principal: Principal(device: "d", groups: chance(90) ? Set(some(Universe.groups)) : nil))
  }

  mutating func context() -> DecisionContext {
    DecisionContext(
      now: Int64.random(in: 0..<2_000_000_000, using: &self), policyAge: pick([0, 50, 100, 101, 200, 201]),
      isDeviceUnlocked: chance(50), osVersion: version())
  }
}
