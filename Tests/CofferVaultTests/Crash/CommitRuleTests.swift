import Testing

/// Each rule that a commit keeps is needed, and the replay of crashes would find it broken.
@Suite struct CommitRuleTests {
  @Test(arguments: CommitRule.allCases) func `the replay finds a broken rule`(rule: CommitRule) throws {
    for seed in UInt64(100)..<112 {
      let run = try RecordedRun(seed: seed, commitCount: 8)
      let broken = rule.broken(run.log)
      let outcome = try CrashReplay(run, log: broken).cut(reorderings: 4, stopAt: 1)
      if outcome.damageCount > 0 { return }
    }
    Issue.record("nothing was found without the rule \(rule)")
  }
}
