import Testing

/// Each rule that a commit keeps is needed, and the replay of crashes would find it broken.
@Suite struct CommitRuleTests {
  @Test(arguments: CommitRule.allCases) func `the replay finds a broken rule`(rule: CommitRule) throws {
    for seed in UInt64(100)..<172 {
      let run = try RecordedRun(seed: seed, commitCount: 8)
      let broken = rule.broken(run.log)
      // A few places of many runs find sooner what shows at few places of any run.
      let outcome = try CrashReplay(run, log: broken).cut(reorderings: 4, onceIn: 8, stopAt: 1)
      if outcome.damageCount > 0 { return }
    }
    Issue.record("nothing was found without the rule \(rule)")
  }
}
