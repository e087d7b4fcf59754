import CofferPolicy
import CofferTestSupport
import Testing

struct DecisionPropertyTests {
  static let seeds = (0..<4).map { _ in UInt64.random(in: 0...UInt64.max) }

  @Test(arguments: seeds)
  func `agrees with a second, naive implementation`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var counts: [Decision.Reason: Int] = [:]
    for round in 0..<5_000 {
      let (policy, request, context) = (random.policy(), random.request(), random.context())
      try policy.validate()
      let decision = decide(request, policy: policy, context: context)
      let naive = NaiveDecision.decide(request, policy, context)
      // Not text before it is needed, which takes longer than the decision.
      func comment() -> Comment { "seed \(seed), round \(round): \(request) \(policy) \(context)" }
      try #require(decision.isPermitted == naive.permitted, comment())
      try #require(Set(decision.rules) == naive.rules, comment())
      counts[decision.reason, default: 0] += 1
    }
    // The rounds are no proof unless they met every reason that a policy can give.
    for reason in Decision.Reason.allCases where reason != .policyMissing {
      #expect(counts[reason, default: 0] > 5, "seed \(seed): \(reason)")
    }
  }

  @Test(arguments: seeds)
  func `does not depend on any order`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for round in 0..<2_000 {
      let (policy, request, context) = (random.policy(), random.request(), random.context())
      var shuffled = policy
      shuffled.apps.shuffle(using: &random)
      shuffled.rules.shuffle(using: &random)
      shuffled.settings.ownerActions.shuffle(using: &random)
      for index in shuffled.rules.indices {
        shuffled.rules[index].conditions.shuffle(using: &random)
        shuffled.rules[index].actions?.shuffle(using: &random)
        shuffled.rules[index].apps?.shuffle(using: &random)
      }
      for index in shuffled.apps.indices { shuffled.apps[index].extensions.shuffle(using: &random) }
      try #require(
        decide(request, policy: policy, context: context) == decide(request, policy: shuffled, context: context),
        "seed \(seed), round \(round)")
    }
  }

  @Test(arguments: seeds)
  func `another forbid never permits, and another permit never forbids`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for round in 0..<2_000 {
      var (policy, request, context) = (random.policy(), random.request(), random.context())
      let before = decide(request, policy: policy, context: context).isPermitted
      var rule = random.policy().rules.first ?? Rule(id: "x", effect: .permit)
      rule.id = "added"
      policy.rules.append(rule)
      let after = decide(request, policy: policy, context: context).isPermitted
      try #require(rule.effect == .forbid ? !after || before : !before || after, "seed \(seed), round \(round)")
    }
  }
}
