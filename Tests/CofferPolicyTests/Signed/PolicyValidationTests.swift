import CofferCrypto
import CofferPolicy
import Testing

struct PolicyValidationTests {
  static let changes: [(String, @Sendable (inout Policy) -> Void)] = [
    ("schema", { $0.schema = 2 }), ("tenant", { $0.tenant = "" }), ("tenant with a colon", { $0.tenant = "a:b" }),
    ("audience", { $0.audience = "all of you" }), ("revision", { $0.revision = 0 }), ("epoch", { $0.keyEpoch = 0 }),
    ("times", { $0.notAfter = $0.issuedAt }), ("times below zero", { $0.issuedAt = -1 }),
    ("prevHash", { $0.prevHash = "abc" }), ("grace order", { $0.grace = Grace(warnAfter: 2, blockAfter: 1) }),
    ("grace zero", { $0.grace = Grace(warnAfter: 0, blockAfter: 1) }),
    ("grace without end", { $0.grace = Grace(warnAfter: 1, blockAfter: .max) }),
    ("app id", { $0.apps[0].id = "app:x" }), ("same app id", { $0.apps += $0.apps }),
    ("control character in a name", { $0.apps[0].name = "Acme\u{1B}[31m" }), ("no name", { $0.apps[0].name = "" }),
    ("bidirectional override in a name", { $0.apps[0].name = "Acme\u{202E}" }),
    ("bundle id", { $0.apps[0].bundleId = "com acme" }), ("team", { $0.apps[0].teamId = "" }),
    ("a stronger tier without key", { $0.apps[0].teamKey = nil }),
    ("dot in extension", { $0.apps[0].extensions = [".pdf"] }), ("upper case", { $0.apps[0].extensions = ["PDF"] }),
    ("extension twice", { $0.apps[0].extensions = ["pdf", "pdf"] }),
    ("action twice", { $0.apps[0].actions = [.view, .view] }),
    ("too many apps", { $0.apps = Array(repeating: $0.apps[0], count: 10_001) }),
    ("rule id", { $0.rules = [Rule(id: "app:editor", effect: .permit)] }),
    ("same rule id", { $0.rules = [Rule(id: "a", effect: .permit), Rule(id: "a", effect: .forbid)] }),
    ("empty scope", { $0.rules = [Rule(id: "a", effect: .forbid, apps: [])] }),
    ("empty actions", { $0.rules = [Rule(id: "a", effect: .permit, actions: [])] }),
    ("unknown classification", { $0.rules = [Rule(id: "a", effect: .forbid, classifications: ["secret"])] }),
    (
      "too many conditions",
      { policy in
        policy.rules = [
          Rule(id: "a", effect: .permit, conditions: Array(repeating: Condition(.deviceUnlocked), count: 21))
        ]
      }
    ),
    ("owner action twice", { $0.settings.ownerActions = [.view, .view] }),
    ("media type", { $0.fileTypes = [FileType(extension: "dwg", mediaTypes: ["image"])] }),
    ("no media type", { $0.fileTypes = [FileType(extension: "dwg", mediaTypes: [])] }),
  ]

  @Test(arguments: changes.indices)
  func `a policy out of bounds is neither issued nor accepted`(index: Int) throws {
    var policy = DecisionTests.policy()
    try policy.validate()
    Self.changes[index].1(&policy)
    #expect(throws: PolicyRefusal.self, "\(Self.changes[index].0)") { try policy.validate() }
    #expect(throws: PolicyRefusal.self) { try PolicyBundle(issuing: policy, key: SigningKey()) }
  }
}
