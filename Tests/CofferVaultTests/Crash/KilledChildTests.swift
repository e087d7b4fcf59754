import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Testing

@testable import CofferVault

#if os(Linux)
  /// A process that works on a vault is killed at some operation, again and again; see `CrashChild`.
  @Suite struct KilledChildTests {
    /// Kills; COFFER_KILLS in the environment asks for more or fewer.
    static let killCount = Effort.environment("COFFER_KILLS").flatMap(Int.init) ?? 30

    @Test func `a vault whose process was killed is that of one of its commits`() throws {
      let folder = try MemoryFolder()
      let child = KilledChild(folder: folder.path)
      let opener = try child.makeVault()
      var expected = ExpectedVault()
      var found: Set<Int> = []
      var killedInCommits = 0
      for seed in Effort.firstSeed..<(Effort.firstSeed + UInt64(Self.killCount)) {
        var generator = SeededGenerator(seed: seed)
        let outcome = try child.runUntilKilled(
          seed: seed, afterLines: Int.random(in: 1...40, using: &generator))
        if outcome.began != outcome.durable { killedInCommits += 1 }
        let states = outcome.states(seed: seed, from: expected)
        let check = CrashCheck(opener: opener, folder: folder.path)
        let state = try check.state(states, allowed: Array(outcome.durable...outcome.began), changing: false)
        expected = states[state]
        found.insert(state)
      }
      // By chance none of a few is.
      #expect(killedInCommits > 0 || Self.killCount < 20)
      #expect(found.count > Self.killCount / 6)
    }
  }
#endif
