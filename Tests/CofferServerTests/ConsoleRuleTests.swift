import CofferPolicy
import CofferServerSQLite
import CofferTestSupport
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// Rules in the console: a form says the whole of a rule, and words say it, too.
@Suite struct ConsoleRuleTests {
  private static func put(_ rule: Rule, _ company: Company) async throws {
    let json = String(decoding: try JSONEncoder().encode(rule), as: UTF8.self)
    let reply = try await company.harness.send(.post, "/v1/rules", token: company.owner, json: json)
    #expect(reply.status == 201, "\(String(decoding: reply.body, as: UTF8.self))")
  }

  static func page(_ person: Person, _ path: String) async throws -> String {
    let reply = try await person.company.harness.send(.get, path, headers: [.cookie: person.cookie])
    #expect(reply.status == 200, "\(path)")
    return String(decoding: reply.body, as: UTF8.self)
  }

  /// A company with what rules can be about.
  static func company(_ harness: Harness) async throws -> Company {
    let company = try await harness.company()
    _ = try await company.make("/v1/apps", Company.app())
    _ = try await company.make("/v1/apps", Company.app("com.acme.viewer"))
    for label in ["secret", "internal"] {
      _ = try await company.make("/v1/classifications", #"{"id":"\#(label)","name":"\#(label.capitalized)"}"#)
    }
    for group in ["board", "sales"] {
      _ = try await company.make("/v1/groups", #"{"id":"\#(group)","name":"\#(group.capitalized)"}"#)
    }
    return company
  }

  private static let apps = ["com.acme.editor", "com.acme.viewer", "org.gone"]
    .map { AppIdentity(bundleId: $0, teamId: "ACME") }

  /// Any rule that the API takes, with up to three conditions of each kind.
  private static func rule(_ random: inout SeededGenerator) -> Rule {
    func some<Value>(_ values: [Value]) -> [Value]? {
      let chosen = values.filter { _ in Bool.random(using: &random) }
      return chosen.isEmpty ? nil : chosen
    }
    func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
    func range() -> VersionRange {
      let kind = number(0...2)
      return VersionRange(
        atLeast: kind == 0 ? nil : "\(number(0...20)).\(number(0...9))", below: kind == 1 ? nil : "\(number(0...20))")
    }
    func test(_ kind: Int) -> Condition.Test {
      switch kind {
      case 0: .deviceUnlocked
      case 1: .policyAgeAtMost([0, 1, 90, 3600, 86_400, 86_401, 200_000].randomElement(using: &random) ?? 0)
      case 2: .osVersion(range())
      case 3: .appVersion(range())
      case 4: .protectionAtLeast(ProtectionLevel.allCases.randomElement(using: &random) ?? .none)
      case 5: .group(["board", "sales", "gone"].randomElement(using: &random) ?? "")
      default:
        {
          let start = number(0...1439)
          return .timeWindow(
            TimeWindow(
              days: some(Array(1...7)) ?? [3], start: start, end: number((start + 1)...1440), offset: number(-840...840)
            ))
        }()
      }
    }
    return Rule(
      id: "rule-1", effect: Bool.random(using: &random) ? .permit : .forbid, actions: some(Action.allCases),
      apps: some(apps), extensions: some(["pdf", "docx", "x-1"]), classifications: some(["secret", "internal"]),
      groups: some(["board", "sales", "gone"]),
      conditions: (0...6).flatMap { kind in
        (0..<number(0...2)).map { _ in Condition(test(kind), negated: Bool.random(using: &random)) }
      })
  }

  @Test func `saving a rule's form as it is changes nothing of the rule`() async throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededGenerator(seed: seed)
    let harness = try Harness()
    let company = try await Self.company(harness)
    let person = try await Person(company)
    for round in 0..<40 {
      let rule = Self.rule(&random)
      try await Self.put(rule, company)
      let form = try #require(
        ConsoleForm(try await Self.page(person, "/console/rules/rule-1"), action: "/console/rules/rule-1/change"))
      let reply = try await ConsoleTests.post(person, form.action, form.sent)
      #expect(reply.status == 303, "seed \(seed), round \(round): \(rule)")
      var kept = try #require(try await company.policy().rules.first)
      var expected = rule
      // Their order means nothing.
      kept.conditions.sort { "\($0)" < "\($1)" }
      expected.conditions.sort { "\($0)" < "\($1)" }
      #expect(kept == expected, "seed \(seed), round \(round)")
      let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/rules/rule-1")]
      _ = try await harness.send(.delete, "/v1/rules/rule-1", token: company.owner, headers: headers)
    }
  }

  @Test func `what a form says of conditions is what the policy says`() async throws {
    let harness = try Harness()
    let company = try await Self.company(harness)
    let person = try await Person(company)
    var form = try #require(ConsoleForm(try await Self.page(person, "/console/new-rule"), action: "/console/rules"))
    form.set("id", "office")
    form.set("effect", "permit")
    form.set("actions", "openIn", "edit")
    form.set("apps", "com.acme.editor ACME")
    form.set("extensions", ".PDF docx")
    form.set("classifications", "secret")
    form.set("groups", "board")
    form.set("unlocked0", "yes")
    form.set("osFrom0", "17.2")
    form.set("osBelow0", "19")
    form.set("appFrom0", "2")
    form.set("appIs0", "not")
    form.set("protection0", "not complete")
    form.set("days0", "1", "2", "3", "4", "5")
    form.set("from0", "08:00")
    form.set("to0", "18:30")
    form.set("offset0", "+01:00")
    form.set("age0", "12")
    form.set("inGroup0", "not sales")
    #expect(try await ConsoleTests.post(person, form.action, form.sent).status == 303)
    let rule = try #require(try await company.policy().rules.first)
    let window = TimeWindow(days: [1, 2, 3, 4, 5], start: 480, end: 1110, offset: 60)
    #expect(
      rule
        == Rule(
          id: "office", effect: .permit, actions: [.openIn, .edit], apps: [Self.apps[0]], extensions: ["pdf", "docx"],
          classifications: ["secret"], groups: ["board"],
          conditions: [
            Condition(.deviceUnlocked), Condition(.osVersion(VersionRange(atLeast: "17.2", below: "19"))),
            Condition(.appVersion(VersionRange(atLeast: "2")), negated: true),
            Condition(.protectionAtLeast(.complete), negated: true), Condition(.timeWindow(window)),
            Condition(.policyAgeAtMost(43_200)), Condition(.group("sales"), negated: true),
          ]))
    let page = try await Self.page(person, "/console/rules/office")
    #expect(
      page.contains(
        "Permits open in and edit in place to Acme Editor, if approved, of .pdf or .docx files classified “Secret”, on "
          + "devices of “Board”, while the device is unlocked, when the operating system is 17.2 or newer, but older "
          + "than 19, unless the app’s version is 2 or newer, for files protected less than “complete”, on Monday to "
          + "Friday from 08:00 to 18:30 UTC+01:00, when the device has heard of the server within 12 hours, on devices "
          + "that are not of “Sales”."))
  }

  @Test(arguments: [
    (["days0": "1"], "from0"), (["from0": "08:00", "to0": "18:00"], "days0"),
    (["days0": "1", "from0": "18:00", "to0": "08:00"], "to0"),
    (["days0": "1", "from0": "08:60", "to0": "18:00"], "from0"),
    (["days0": "1", "from0": "08:00", "to0": "24:01"], "to0"),
    (["days0": "8", "from0": "08:00", "to0": "09:00"], "days0"),
    (["days0": "1", "from0": "08:00", "to0": "18:00", "offset0": "+15:00"], "offset0"),
    (["days0": "1", "from0": "08:00", "to0": "18:00", "offset0": "1"], "offset0"), (["offset0": "+01:00"], "days0"),
    (["osFrom0": "17,4"], "osFrom0"), (["appBelow0": "x"], "appBelow0"), (["age0": "-1"], "age0"),
    (["age0": "1", "ageUnit0": "fortnights"], "age0"), (["inGroup0": "board"], "inGroup0"),
    (["protection0": "yes strong"], "conditions"), (["extensions": "p/df"], "extensions"),
  ])
  func `a condition that is half said is refused, and nothing is changed`(
    fields: [String: String], wrong: String
  ) async throws {
    let harness = try Harness()
    let company = try await Self.company(harness)
    let person = try await Person(company)
    var form = try #require(ConsoleForm(try await Self.page(person, "/console/new-rule"), action: "/console/rules"))
    form.set("id", "half")
    for (name, value) in fields { form.set(name, value) }
    for then in ["", "draft"] {
      let reply = try await ConsoleTests.post(person, form.action, form.sent + [("then", then)])
      #expect(reply.status == 422)
      let page = String(decoding: reply.body, as: UTF8.self)
      #expect(page.contains("#console-rules-\(wrong)\""), "\(fields)")
      // What was typed is there again.
      for (name, value) in fields
      where ["from", "to", "off", "osF", "app", "age0", "ext"].contains(where: name.hasPrefix) {
        #expect(page.contains("value=\"\(value)\""), "\(value)")
      }
    }
    #expect(try await company.policy().rules.isEmpty)
    #expect(try await harness.store.read { try $0.countResources(.draft, tenant: company.tenant.id) } == 0)
  }

  @Test func `a rule of an earlier version is not saved over a newer one`() async throws {
    let harness = try Harness()
    let company = try await Self.company(harness)
    let person = try await Person(company)
    try await Self.put(Rule(id: "r", effect: .forbid, actions: [.print]), company)
    var form = try #require(
      ConsoleForm(try await Self.page(person, "/console/rules/r"), action: "/console/rules/r/change"))
    let stale = form
    form.set("actions", "print", "screenshot")
    #expect(try await ConsoleTests.post(person, form.action, form.sent).status == 303)
    let refused = try await ConsoleTests.post(person, stale.action, stale.sent)
    #expect(refused.status == 412)
    #expect(try await company.policy().rules.first?.actions == [.print, .screenshot])
    // Who sends the form of that page once more has seen what is there: it shows nothing else.
    let shown = try #require(ConsoleForm(String(decoding: refused.body, as: UTF8.self), action: form.action))
    #expect(shown.sent.filter { $0.0 == "actions" }.map(\.1).sorted() == ["print", "screenshot"])
    // Nor does what is not accepted for another reason become newer by that.
    var wrong = stale
    wrong.set("extensions", "p/df")
    let typed = try await ConsoleTests.post(person, wrong.action, wrong.sent)
    #expect(typed.status == 422)
    let page = try #require(ConsoleForm(String(decoding: typed.body, as: UTF8.self), action: form.action))
    #expect(page.sent.filter { $0.0 == "match" }.map(\.1) == stale.sent.filter { $0.0 == "match" }.map(\.1))
    // A draft takes no more than what was seen either, and none is left of it.
    for action in ["change", "remove"] {
      let path = "/console/rules/r/\(action)"
      let present = try #require(ConsoleForm(try await Self.page(person, "/console/rules/r"), action: path))
      let sent = present.sent.filter { $0.0 != "match" } + stale.sent.filter { $0.0 == "match" } + [("then", "draft")]
      #expect(try await ConsoleTests.post(person, path, sent).status == 412, "\(action)")
    }
    #expect(try await harness.store.read { try $0.countResources(.draft, tenant: company.tenant.id) } == 0)
  }

  @Test func `the question that a rule links to is about the rule`() async throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededGenerator(seed: seed)
    let harness = try Harness()
    let company = try await Self.company(harness)
    let person = try await Person(company)
    for app in try await harness.store.read({ try $0.appRecords(tenant: company.tenant.id, after: 0, limit: 10) }) {
      let path = "/v1/apps/\(app.value.approval.id)"
      _ = try await harness.send(
        .post, "\(path)/approve", token: company.owner, headers: [.ifMatch: try await company.tag(path)], json: "{}")
    }
    for _ in 0..<20 {
      // One of each kind at the most: what two of a kind ask for need not exist.
      var rule = Self.rule(&random)
      rule.apps = rule.apps.map { _ in [Self.apps[1]] }
      rule.groups = rule.groups.map { _ in ["board"] }
      rule.extensions = rule.extensions.map { _ in ["pdf"] }
      rule.effect = .forbid
      let tests: [Condition.Test] = [
        .deviceUnlocked, .policyAgeAtMost(90_000), .osVersion(VersionRange(atLeast: "3")),
        .appVersion(VersionRange(below: "9")), .protectionAtLeast(.completeUnlessOpen),
        .timeWindow(TimeWindow(days: [2], start: 60, end: 120, offset: -90)),
      ]
      rule.conditions = tests.filter { _ in Bool.random(using: &random) }
        .map { Condition($0, negated: Bool.random(using: &random)) }
      try await Self.put(rule, company)
      let page = try await Self.page(person, "/console/rules/rule-1")
      let start = try #require(page.range(of: "href=\"/console/simulator?"))
      let link = "/console/simulator?\(page[start.upperBound...].prefix { $0 != "\"" })"
      let answer = try await Self.page(person, link.replacing("&amp;", with: "&"))
      #expect(answer.contains("class=\"answer refused\""), "seed \(seed): \(rule)")
      #expect(answer.contains("href=\"/console/rules/rule-1\">rule rule-1</a>"), "seed \(seed): \(rule)")
      let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/rules/rule-1")]
      _ = try await harness.send(.delete, "/v1/rules/rule-1", token: company.owner, headers: headers)
    }
  }

  /// One company's rule, which everybody's server would count with.
  @Test func `hours that are none are refused, and shown where they are stored`() async throws {
    let harness = try Harness()
    let company = try await Self.company(harness)
    let person = try await Person(company)
    let odd = [
      TimeWindow(days: [1], start: 0, end: 60, offset: .min), TimeWindow(days: [1], start: 0, end: 60, offset: 1 << 62),
      TimeWindow(days: [1], start: 1 << 62, end: .max, offset: 0), TimeWindow(days: [0], start: 0, end: 60, offset: 0),
      TimeWindow(days: [], start: 0, end: 60, offset: 0), TimeWindow(days: [1], start: 60, end: 60, offset: 0),
    ]
    for window in odd {
      let rule = Rule(id: "rule-1", effect: .forbid, conditions: [Condition(.timeWindow(window))])
      let json = String(decoding: try JSONEncoder().encode(rule), as: UTF8.self)
      #expect(try await harness.send(.post, "/v1/rules", token: company.owner, json: json).status == 422)
      try await harness.store.write {
        _ = try $0.insert(StoredResource(.rule, id: "rule-1", rule), tenant: company.tenant.id)
      }
      for path in ["/console/rules", "/console/rules/rule-1"] {
        #expect(try await Self.page(person, path).contains("hours that are none"), "\(path)")
      }
      // What is stored stands in nobody's way.
      #expect(try await harness.send(.post, "/v1/drafts", token: company.owner, json: "{}").status == 201)
      try await harness.store.write { _ = try $0.deleteResource(.rule, id: "rule-1", tenant: company.tenant.id) }
    }
  }
}
