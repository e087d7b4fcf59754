import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Glibc
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

  /// A file system in a file, mounted in a folder.
  final class LoopDisk {
    enum Kind: String {
      case ext4, xfs

      var program: String { "/usr/sbin/mkfs.\(rawValue)" }
      /// Tried, because a kernel loads a file system when it is first mounted.
      var canBeMounted: Bool {
        FileManager.default.isExecutableFile(atPath: program) && (try? LoopDisk(self)) != nil
      }
    }

    static var isPossible: Bool {
      ProcessHardening.userID == 0 && FileManager.default.fileExists(atPath: "/dev/loop-control")
    }

    private let folder: TemporaryFolder
    var mountPoint: String { folder("disk") }
    private var image: String { folder("image") }

    init(_ kind: Kind) throws {
      folder = try TemporaryFolder()
      try FileSystem().makeDirectory(folder("disk"))
      // The smallest that mkfs.xfs makes; sparse.
      try FileSystem().open(folder("image"), [.writeOnly, .createNew]).truncate(to: 320 << 20)
      try Self.run(kind.program, ["-q", image])
      try mount()
    }

    deinit { try? Self.run("/usr/bin/umount", [mountPoint]) }

    private func mount() throws { try Self.run("/usr/bin/mount", ["-o", "loop", image, mountPoint]) }

    /// Every call fails from now on, and nothing that was not synced is written back.
    func shutDown() throws {
      let disk = try FileSystem().open(mountPoint, .directory)
      // EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN: _IOR('X', 125, __u32), with the flag NOLOGFLUSH.
      var flags: UInt32 = 2
      guard ioctl(disk.number, 0x8004_587d, &flags) == 0 else { throw SystemError(code: errno, call: "ioctl") }
    }

    func remount() throws {
      try Self.run("/usr/bin/umount", [mountPoint])
      try mount()
    }

    private static func run(_ program: String, _ arguments: [String]) throws {
      let process = try Process.run(URL(filePath: program), arguments: arguments)
      process.waitUntilExit()
      guard process.terminationStatus == 0 else { throw SystemError(code: EIO, call: program) }
    }
  }
#endif
