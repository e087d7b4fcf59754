#if os(Linux)
  internal import CofferSystem
  internal import Foundation
  internal import Glibc

  /// A file system in a file, mounted in a folder.
  public final class LoopDisk {
    public enum Kind: String, Sendable {
      case ext4, xfs

      var program: String { "/usr/sbin/mkfs.\(rawValue)" }
      /// Tried, because a kernel loads a file system when it is first mounted.
      public var canBeMounted: Bool {
        FileManager.default.isExecutableFile(atPath: program) && (try? LoopDisk(self)) != nil
      }
    }

    public static var isPossible: Bool {
      geteuid() == 0 && FileManager.default.fileExists(atPath: "/dev/loop-control")
    }

    private let folder: TemporaryFolder
    public var mountPoint: String { folder("disk") }
    private var image: String { folder("image") }

    public init(_ kind: Kind) throws {
      folder = try TemporaryFolder()
      try FileSystem().makeDirectory(folder("disk"))
      // The smallest that mkfs.xfs makes; sparse.
      try FileSystem().open(folder("image"), [.writeOnly, .createNew]).truncate(to: 320 << 20)
      try Self.run(kind.program, ["-q", image])
      try mount()
    }

    /// Also while a process that has just been killed still has something open there.
    deinit { try? Self.run("/usr/bin/umount", ["-l", mountPoint]) }

    private func mount() throws { try Self.run("/usr/bin/mount", ["-o", "loop", image, mountPoint]) }

    /// Every call fails from now on, and nothing that was not synced is written back.
    public func shutDown() throws {
      let disk = try FileSystem().open(mountPoint, .directory)
      // EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN: _IOR('X', 125, __u32), with the flag NOLOGFLUSH.
      var flags: UInt32 = 2
      guard ioctl(disk.number, 0x8004_587d, &flags) == 0 else { throw SystemError(code: errno, call: "ioctl") }
    }

    /// Whoever writes waits from now on, and whoever reads does not, until ``thaw()``.
    public func freeze() throws { try Self.run("/usr/sbin/fsfreeze", ["--freeze", mountPoint]) }
    public func thaw() throws { try Self.run("/usr/sbin/fsfreeze", ["--unfreeze", mountPoint]) }

    /// Mounts it as after a power cut.
    public func remount() throws {
      // As long as another process has it in a name space of mounts of its own, what is mounted again is the file system that was shut down.
      let end = ContinuousClock.now + .seconds(120)
      repeat {
        try Self.run("/usr/bin/umount", [mountPoint])
        try mount()
      } while isShutDown && ContinuousClock.now < end
    }

    private var isShutDown: Bool {
      do {
        try FileSystem().makeDirectory(folder("disk/tried"))
        _ = try FileSystem().removeDirectory(folder("disk/tried"))
        return false
      } catch {
        return error.code == EIO
      }
    }

    private static func run(_ program: String, _ arguments: [String]) throws {
      let process = try Process.run(URL(filePath: program), arguments: arguments)
      process.waitUntilExit()
      guard process.terminationStatus == 0 else { throw SystemError(code: EIO, call: program) }
    }
  }
#endif
