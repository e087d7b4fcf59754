import CofferSystem
import CofferTestSupport
import Foundation
import Glibc
import Synchronization
import Testing

/// A mounted vault whose disk takes nothing for a while, as one that is slow, or far away.
@Suite(
  .enabled(if: Ground.mountIsThere && LoopDisk.isPossible, "needs /dev/fuse, root and loop devices"),
  .enabled(if: LoopDisk.Kind.ext4.canBeMounted, "needs mkfs.ext4, and a kernel that mounts ext4"))
final class SlowDiskMountTests {
  /// More than the threads that a mount has at once.
  private static let syncCount = 2 * ProcessInfo.processInfo.activeProcessorCount + 20

  let desk: Desk
  let disk: LoopDisk
  private var isFrozen = false

  init() throws {
    desk = try Desk()
    disk = try LoopDisk(.ext4)
    desk.environment["COFFER_VAULT"] = disk.mountPoint + "/vault"
    try desk.makeVault()
    try Kernel.mkdir(desk.path("mnt"))
    // Nothing of these the kernel knows.
    try desk.done("mkdir", "/folder")
    for number in 0..<8 {
      try desk.done("put", "-", "/folder/file-\(number)", input: noise(100_000, seed: UInt64(number)))
    }
    try desk.done("mount", "mnt")
  }

  deinit {
    if isFrozen { try? disk.thaw() }
    _ = try? desk.run("coffer", ["unmount", "--force", desk.path("mnt")])
    _ = try? desk.run("coffer", ["agent", "stop", "--force"])
  }

  /// A thread that sleeps is in the call that it has begun.
  private static func isAsleep(_ thread: String) -> Bool {
    guard let text = try? KernelFile.text(of: "/proc/\(thread)/stat"),
      let state = text[(text.lastIndex(of: ")") ?? text.startIndex)...].dropFirst(2).first
    else { return false }
    return state == "S" || state == "D"
  }

  @Test func `programs that sync keep nobody from reading, however many they are`() throws {
    let mount = desk.path("mnt/")
    let files = try (0..<Self.syncCount).map { number in
      try Handle(mount + "written-\(number)", O_CREAT | O_RDWR)
    }
    try disk.freeze()
    isFrozen = true
    // It waits in memory.
    for (number, file) in files.enumerated() { try file.write(noise(1000, seed: UInt64(number)), at: 0) }
    let threads = Mutex<[String]>([])
    let hasRead = DispatchSemaphore(value: 0)
    nonisolated(unsafe) let disk = disk
    let outcomes = try inParallel(Self.syncCount + 2) { number -> Bool in
      if number < files.count {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
        threads.withLock { $0.append(own) }
        try files[number].sync()
      } else if number == files.count {
        let end = SuspendingClock.now + .seconds(60)
        while !threads.withLock({ $0.count == files.count && $0.allSatisfy(Self.isAsleep) }) {
          guard SuspendingClock.now < end else { return false }
          sched_yield()
        }
        for number in 0..<8 {
          guard try Kernel.content(mount + "folder/file-\(number)") == noise(100_000, seed: UInt64(number)) else {
            return false
          }
        }
        _ = try Kernel.fileSystem(mount)
        hasRead.signal()
      } else {
        defer { try? disk.thaw() }
        return hasRead.wait(timeout: .now() + 60) == .success
      }
      return true
    }
    isFrozen = false
    #expect(!outcomes.contains(false), "\(outcomes)")
    try desk.served("agent", "stop")
    try desk.done("verify", "--deep")
    for number in 0..<Self.syncCount {
      #expect(try desk.done("cat", "/written-\(number)").bytes == noise(1000, seed: UInt64(number)))
    }
  }
}
