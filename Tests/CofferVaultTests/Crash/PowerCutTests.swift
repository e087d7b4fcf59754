import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Testing

@testable import CofferVault

#if os(Linux)
  /// A real file system in a file is shut down under load, without writing back what it holds, and mounted again.
  ///
  /// Needs root and loop devices.
  @Suite(.serialized, .enabled(if: LoopDisk.isPossible, "needs root and loop devices"))
  struct PowerCutTests {
    static let cutCount = Effort.environment("COFFER_KILLS").flatMap(Int.init) ?? 8

    @Test(.enabled(if: LoopDisk.Kind.ext4.canBeMounted, "needs mkfs.ext4, and a kernel that mounts ext4"))
    func `a vault on ext4 survives that its disk goes away`() throws { try cut(.ext4) }

    @Test(.enabled(if: LoopDisk.Kind.xfs.canBeMounted, "needs mkfs.xfs, and a kernel that mounts xfs"))
    func `a vault on xfs survives that its disk goes away`() throws { try cut(.xfs) }

    private func cut(_ kind: LoopDisk.Kind) throws {
      let disk = try LoopDisk(kind)
      let child = KilledChild(folder: disk.mountPoint)
      let opener = try child.makeVault()
      var expected = ExpectedVault()
      var found: Set<Int> = []
      for seed in Effort.firstSeed..<(Effort.firstSeed + UInt64(Self.cutCount)) {
        var generator = SeededGenerator(seed: seed)
        let outcome = try child.runUntilKilled(
          seed: seed, afterLines: Int.random(in: 1...60, using: &generator)
        ) { try disk.shutDown() }
        try disk.remount()
        let states = outcome.states(seed: seed, from: expected)
        let check = CrashCheck(opener: opener, folder: disk.mountPoint)
        let state = try check.state(states, allowed: Array(outcome.durable...outcome.began), changing: false)
        expected = states[state]
        found.insert(state)
      }
      #expect(found.count > Self.cutCount / 4)
    }
  }
#endif
