import CofferFiles
import CofferKeys
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferSystem
@testable import CofferVault

/// The room of what is removed comes back a moment after the commit: whoever needs it waits for it, and nobody else does.
@Suite(.enabled(if: MountedDisk.isPossible, "a disk that fills up is mounted for these tests, which needs root"))
struct RoomGivenBackTests {
  /// Keeps the first thread that is about to delete something until it is told to go on.
  private final class SlowRemoval: FaultPlan {
    private let condition = NSCondition()
    private nonisolated(unsafe) var isMeant: (@Sendable () -> Bool)?
    private nonisolated(unsafe) var isHeld = true
    private nonisolated(unsafe) var hasCome = false

    func hold(where isMeant: @escaping @Sendable () -> Bool) { condition.withLock { self.isMeant = isMeant } }

    func letGo() {
      condition.withLock {
        isMeant = nil
        isHeld = false
        condition.broadcast()
      }
    }

    func waitUntilHeld() { condition.withLock { while !hasCome { condition.wait() } } }

    func willCall(_ call: SystemCall) throws(SystemError) {
      // Where room is short it is emptied first.
      guard call == .unlink || call == .truncate, let isMeant = condition.withLock({ self.isMeant }), isMeant() else {
        return
      }
      condition.withLock {
        guard !hasCome else { return }
        hasCome = true
        condition.broadcast()
        while isHeld { condition.wait() }
      }
    }
  }

  /// Adds a file beside what the test does, more than a commit leaves of what it keeps for itself.
  private final class Newcomer: Sendable {
    private let vault: Vault
    private let queue = DispatchQueue(label: "newcomer")
    private let hasEnded = Atomic(false)
    private let refusal = Mutex<(any Error)?>(nil)

    init(in vault: Vault) {
      self.vault = vault
      queue.async { [self] in
        do {
          _ = try vault.makeDirectory(at: VaultPath("folder"))
          let file = try vault.createFile(at: VaultPath("later"))
          for piece in 0..<6 { try file.write([UInt8](repeating: 5, count: 1 << 20), at: UInt64(piece) << 20) }
        } catch {
          refusal.withLock { $0 = error }
        }
        hasEnded.store(true, ordering: .releasing)
      }
    }

    /// `false` where it has ended without waiting for room.
    func waitUntilItWaits() -> Bool {
      while vault.roomGivenBack.waiterCount == 0 {
        if hasEnded.load(ordering: .acquiring) { return false }
        sched_yield()
      }
      return true
    }

    func finish() throws {
      queue.sync {}
      if let refusal = refusal.withLock({ $0 }) { throw refusal }
    }
  }

  private func objectCount(_ small: SmallDisk) throws -> Int {
    let folder = small.disk.path + "/vault/" + VaultFormat.objects
    return try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0.contains("/") }.count
  }

  @Test func `who finds the disk full waits for the room that another thread is giving back`() throws {
    let removal = SlowRemoval()
    let small = try SmallDisk(mebibytes: 24, seed: 14, faults: FileSystem(faults: removal))
    let (vault, path) = (small.vault, try VaultPath("large"))
    try vault.importFile(small.fixture.source(small.generator.bytes(8 << 20)), to: path)
    try vault.commit()
    try small.disk.fill()
    try vault.remove(path)
    // Not what is deleted to make room for the commit.
    removal.hold { vault.index.read { $0.underWay == nil } }
    let committer = Thread { try? vault.commit() }
    committer.start()
    removal.waitUntilHeld()
    // The commit is made, and the object still there.
    let newcomer = Newcomer(in: vault)
    #expect(newcomer.waitUntilItWaits())
    removal.letGo()
    try newcomer.finish()
    try vault.commit()
    #expect(try vault.contents(of: VaultPath("later")).count == 6 << 20)
    try vault.close()
  }

  @Test(arguments: [true, false])
  func `who commits does not wait until a large file is deleted, and who closes the vault does`(isLarge: Bool) throws {
    let removal = SlowRemoval()
    let small = try SmallDisk(mebibytes: 512, seed: 15, faults: FileSystem(faults: removal))
    let vault = small.vault
    // One large file, or many that are not.
    let names = isLarge ? ["large"] : (0..<65).map { "small \($0)" }
    for name in names {
      let bytes = small.generator.bytes(isLarge ? 8 << 20 : 20_000)
      try vault.importFile(small.fixture.source(bytes), to: VaultPath(name))
    }
    try vault.commit()
    for name in names { try vault.remove(VaultPath(name)) }
    removal.hold { true }
    try vault.commit()
    removal.waitUntilHeld()
    // Others commit as well.
    _ = try vault.makeDirectory(at: VaultPath("folder"))
    try vault.commit()
    #expect(try objectCount(small) > 0)
    let closer = Thread { try? vault.close() }
    closer.start()
    while vault.commits.waiterCount == 0, !closer.isFinished { sched_yield() }
    #expect(!closer.isFinished)
    removal.letGo()
    while !closer.isFinished { sched_yield() }
    #expect(try objectCount(small) == 0)
    small.vault = try Vault.open(
      at: small.disk.path + "/vault", keyStore: small.fixture.keyStore, passcode: { VaultFixture.passcode() },
      options: TestVault.options)
    #expect(try small.vault.list(.root).map(\.name) == [Array("folder".utf8)])
    try small.vault.close()
  }

  /// What is deleted beside a commit is still room that is about to come.
  @Test func `who finds the disk full waits for what is deleted beside, and who deletes more meanwhile does so alone`()
    throws
  {
    let removal = SlowRemoval()
    let small = try SmallDisk(mebibytes: 64, seed: 16, faults: FileSystem(faults: removal))
    let vault = small.vault
    for name in ["first", "second"] {
      try vault.importFile(small.fixture.source(small.generator.bytes(8 << 20)), to: VaultPath(name))
    }
    try vault.commit()
    removal.hold { true }
    try vault.remove(VaultPath("first"))
    // It is not waited for, because there is room.
    try vault.commit()
    removal.waitUntilHeld()
    try vault.remove(VaultPath("second"))
    #expect(try objectCount(small) == 2)
    // The other thread is busy: the second is gone when this returns.
    try vault.commit()
    #expect(try objectCount(small) == 1)
    // Changes that wait for their place already, more than the log has room for.
    for number in 0..<100 { _ = try vault.makeDirectory(at: VaultPath("\(number)")) }
    try small.disk.fill()
    // As it does from time to time.
    vault.room.look()
    let newcomer = Newcomer(in: vault)
    #expect(newcomer.waitUntilItWaits())
    removal.letGo()
    try newcomer.finish()
    try vault.commit()
    try vault.close()
  }
}
