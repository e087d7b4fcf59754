import CofferCrypto
import CofferPolicy
import Testing

struct DecisionTests {
  static let team = SigningKey().verifyingKey
  static let editor = AppIdentity(bundleId: "com.acme.editor", teamId: "ACME")
  static let pdf = ContentType(fileExtension: "pdf", sniffed: "application/pdf")

  static func policy(_ change: (inout Policy) -> Void = { _ in }) -> Policy {
    Company().policy(3) { policy in
      policy.apps = [
        AppApproval(
          id: "editor", name: "Acme Editor", identity: editor, teamKey: team, tier: .mediated,
          extensions: ["pdf", "docx"], actions: [.openIn])
      ]
      change(&policy)
    }
  }

  static func ask(
    _ policy: Policy, _ content: ContentType = pdf, action: Action = .openIn, identity: AppIdentity = editor,
    key: VerifyingKey? = team, tier: Tier = .mediated, age: Int64 = 0, label: String? = nil
  ) -> Decision {
    let app = RequestingApp(identity: identity, version: "1.0", teamKey: key, tier: tier)
    let file = FileFacts(content: content, classification: label, protection: .complete, size: 10)
    return decide(
      Request(actor: .app(app), action: action, file: file, principal: Principal(device: "device-1")), policy: policy,
      context: DecisionContext(now: 1_000_000, policyAge: age, isDeviceUnlocked: true, osVersion: "17.2"))
  }

  static func askOwner(_ policy: Policy, _ action: Action, file: ContentType? = nil) -> Decision {
    decide(
      Request(
        actor: .owner, action: action, file: file.map { FileFacts(content: $0, protection: .complete, size: 1) },
        principal: Principal(device: "device-1")), policy: policy,
      context: DecisionContext(now: 1_000_000, policyAge: 0, isDeviceUnlocked: true, osVersion: "17.2"))
  }

  @Test func `an approved app gets an approved file, by its approval`() {
    let decision = Self.ask(Self.policy())
    #expect(decision.isPermitted)
    #expect(decision.rules == ["app:editor"])
    #expect(decision.revision == 3)
    #expect(decision.warning == nil)
  }

  @Test func `each part of an approval is needed`() {
    let policy = Self.policy()
    let otherKey = SigningKey().verifyingKey
    let otherTeam = AppIdentity(bundleId: "com.acme.editor", teamId: "EVIL")
    let otherApp = AppIdentity(bundleId: "com.acme.editor2", teamId: "ACME")
    let docx = ContentType(fileExtension: "docx", sniffed: "application/pdf")
    let png = ContentType(fileExtension: "png", sniffed: "image/png")
    let odd = ContentType(fileExtension: "odd", sniffed: "application/pdf")
    #expect(Self.ask(policy, identity: otherTeam).reason == .appNotApproved)
    #expect(Self.ask(policy, identity: otherApp).reason == .appNotApproved)
    #expect(Self.ask(policy, key: otherKey).reason == .teamKeyMismatch)
    #expect(Self.ask(policy, key: nil).reason == .teamKeyMismatch)
    #expect(Self.ask(policy, tier: .filtered).reason == .tierTooWeak)
    #expect(Self.ask(policy, action: .edit).reason == .notPermitted)
    #expect(Self.ask(policy, png).reason == .notPermitted)
    #expect(Self.ask(policy, docx).reason == .contentDisagrees)
    #expect(Self.ask(policy, odd).reason == .contentUnknown)
    #expect(Self.ask(policy, ContentType(fileExtension: "pdf", sniffed: nil)).reason == .contentUnknown)
    #expect(Self.ask(policy, label: "secret").reason == .classificationUnknown)
    #expect(Self.ask(Self.policy { $0.apps = [] }).reason == .appNotApproved)
  }

  @Test func `an app without a team key is refused unless the company allows the filtered tier`() {
    func policy(_ allowed: Bool) -> Policy {
      Self.policy { policy in
        policy.apps[0].teamKey = nil
        policy.apps[0].tier = .filtered
        policy.settings.allowFilteredTier = allowed
      }
    }
    for tier in Tier.allCases {
      #expect(Self.ask(policy(false), tier: tier).reason == .tierTooWeak)
      #expect(Self.ask(policy(true), tier: tier).isPermitted)
    }
  }

  @Test func `forbid beats permit, and names itself`() {
    let policy = Self.policy { policy in
      policy.rules = [
        Rule(id: "allow", effect: .permit), Rule(id: "no-pdf", effect: .forbid, extensions: ["pdf"]),
        Rule(id: "no-print", effect: .forbid, actions: [.print]),
      ]
    }
    let decision = Self.ask(policy)
    #expect(decision.reason == .forbidden)
    #expect(decision.rules == ["no-pdf"])
    #expect(decision.sentence.contains("no-pdf"))
  }

  @Test func `a permit widens what an approved app may do, and admits no other app`() {
    let policy = Self.policy { $0.rules = [Rule(id: "print-all", effect: .permit, actions: [.print])] }
    #expect(Self.ask(policy, action: .print).rules == ["print-all"])
    #expect(!Self.ask(policy, action: .print, key: nil).isPermitted)
    #expect(!Self.ask(policy, action: .print, identity: AppIdentity(bundleId: "b", teamId: "ACME")).isPermitted)
  }

  static let failing: [Condition.Test] = [
    .unknown(.object(["kind": .string("moonPhase")])), .osVersion(VersionRange(atLeast: "seventeen")),
    .osVersion(VersionRange()), .appVersion(VersionRange(below: "1.0-beta")), .policyAgeAtMost(-1),
    .timeWindow(TimeWindow(days: [8], start: 0, end: 1440, offset: 0)),
    .timeWindow(TimeWindow(days: [1, 2, 3, 4, 5, 6, 7], start: 900, end: 60, offset: 0)),
  ]

  @Test(arguments: failing, [true, false])
  func `a condition that cannot be evaluated denies in a forbid and permits nothing`(
    test: Condition.Test, negated: Bool
  ) {
    let condition = Condition(test, negated: negated)
    let forbidding = Self.policy { $0.rules = [Rule(id: "odd", effect: .forbid, conditions: [condition])] }
    #expect(Self.ask(forbidding).reason == .ruleFailed)
    #expect(Self.ask(forbidding).rules == ["odd"])
    let permitting = Self.policy {
      $0.rules = [Rule(id: "odd", effect: .permit, actions: [.print], conditions: [condition])]
    }
    #expect(Self.ask(permitting, action: .print).reason == .notPermitted)
    // A rule about something else does not fail here.
    let elsewhere = Self.policy {
      $0.rules = [Rule(id: "odd", effect: .forbid, actions: [.print], conditions: [condition])]
    }
    #expect(Self.ask(elsewhere).isPermitted)
  }

  @Test func `the owner may do what the settings say, whatever the type, unless a rule forbids it`() {
    let odd = ContentType(fileExtension: "odd", sniffed: nil)
    for action in Action.allCases {
      let isAllowed = [Action.import, .view, .edit].contains(action)
      let decision = Self.askOwner(Self.policy(), action, file: odd)
      #expect(decision.isPermitted == isAllowed)
      #expect(decision.rules == ["settings:ownerActions"])
    }
    let mount = Self.policy { policy in
      policy.settings.ownerActions = [.mount, .saveCopy]
      policy.rules = [
        Rule(id: "no-mount", effect: .forbid, actions: [.mount]),
        Rule(id: "no-pdf-out", effect: .forbid, actions: [.saveCopy], extensions: ["pdf"]),
        Rule(id: "anything", effect: .permit),
      ]
    }
    #expect(Self.askOwner(mount, .mount).rules == ["no-mount"])
    #expect(Self.askOwner(mount, .saveCopy, file: Self.pdf).reason == .forbidden)
    // Renaming does not get a file past a rule about its type.
    #expect(Self.askOwner(mount, .saveCopy, file: odd).reason == .ruleFailed)
    #expect(Self.askOwner(mount, .saveCopy, file: ContentType(fileExtension: "png", sniffed: "image/png")).isPermitted)
    #expect(Self.askOwner(mount, .import, file: Self.pdf).reason == .ownerActionNotAllowed)
  }

  @Test func `an old policy warns, then blocks, at the very second`() {
    let policy = Self.policy { $0.grace = Grace(warnAfter: 3_600, blockAfter: 7_200) }
    #expect(Self.ask(policy, age: 3_600).warning == nil)
    #expect(Self.ask(policy, age: 3_601).warning != nil)
    #expect(Self.ask(policy, age: 7_200).isPermitted)
    #expect(Self.ask(policy, age: 7_201).reason == .graceEnded)
    #expect(Self.ask(policy, age: 7_201).warning == nil)
    #expect(Self.ask(policy, age: .max).reason == .graceEnded)
  }

  @Test func `sentences hold nothing that a file or an app smuggled in`() {
    let nasty = "pdf\u{1B}[2J\nPermitted"
    let content = Self.ask(Self.policy(), ContentType(fileExtension: nasty, sniffed: "application/pdf"))
    let app = Self.ask(Self.policy(), identity: AppIdentity(bundleId: nasty, teamId: "ACME"))
    for decision in [content, app] {
      #expect(!decision.isPermitted)
      #expect(!decision.sentence.contains { $0.isNewline || $0 == "\u{1B}" })
    }
  }
}
