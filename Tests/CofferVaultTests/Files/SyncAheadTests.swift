import CofferFiles
import CofferKeys
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferSystem
@testable import CofferVault

/// A file that is synced can be written meanwhile, and what is written then is not taken for synced.
@Suite struct SyncAheadTests {
  /// Runs something in place of a thread that is about to sync, as often as it is told, and notes how often it was asked.
  private final class AtSync: FaultPlan {
    private let action = Mutex<(@Sendable () throws -> Void)?>(nil)
    let count = Atomic(0)
    let failures = Mutex<[any Error]>([])

    func set(_ action: (@Sendable () throws -> Void)?) { self.action.withLock { $0 = action } }

    func willCall(_ call: SystemCall) throws(SystemError) {
      guard call == .sync else { return }
      count.wrappingAdd(1, ordering: .relaxed)
      do { try action.withLock { $0 }?() } catch { failures.withLock { $0.append(error) } }
    }
  }

  /// So many bytes lie in an object.
  private static let byteCount = 3 << 20
  private static func noise() -> [UInt8] {
    var generator = SeededGenerator(seed: 1)
    return generator.bytes(byteCount)
  }

  private func node(of path: VaultPath, in vault: Vault) throws -> FileNode {
    try #require(vault.files.node(vault.attributes(at: path).number))
  }

  @Test func `a file is not locked while its object is synced, and what is written then is durable with the next sync`()
    throws
  {
    let fixture = try VaultFixture()
    let plan = AtSync()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    let path = try VaultPath("file")
    let file = try vault.createFile(at: path)
    var bytes = Self.noise()
    try file.write(bytes, at: 0)
    let node = try node(of: path, in: vault)
    let wasFree = Atomic(false)
    // The first sync is the object's; what comes after it has locks of its own.
    plan.set {
      plan.set(nil)
      guard node.writing.withLockIfAvailable({ _ in true }) == true else { return }
      wasFree.store(true, ordering: .relaxed)
      try file.write([UInt8](repeating: 7, count: 50_000), at: 100_000)
    }
    try file.sync()
    let isFree = wasFree.load(ordering: .relaxed)
    #expect(isFree)
    #expect(plan.failures.withLock { $0.isEmpty })
    bytes.replaceSubrange(100_000..<150_000, with: [UInt8](repeating: 7, count: 50_000))
    #expect(try vault.contents(of: path) == bytes)
    try file.sync()
    try fixture.copyAsAfterCrash()
    let crashed = try fixture.openAfterCrash()
    #expect(try crashed.contents(of: path) == bytes)
    #expect(try crashed.verify(isDeep: true).isClean)
    try crashed.close()
    try file.close()
    try vault.close()
  }

  @Test(arguments: [0, 1, 2, 20]) func `what is written during a sync is synced before it joins`(writes: Int) throws {
    let fixture = try VaultFixture()
    let plan = AtSync()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    let file = try vault.createFile(at: VaultPath("file"))
    try file.write(Self.noise(), at: 0)
    let node = try node(of: VaultPath("file"), in: vault)
    let left = Atomic(writes)
    /// Syncs of the object: those that come before the join.
    let syncs = Atomic(0)
    plan.set {
      guard node.hasChanges.load(ordering: .relaxed) else { return }
      syncs.wrappingAdd(1, ordering: .relaxed)
      guard left.load(ordering: .relaxed) > 0, node.writing.withLockIfAvailable({ _ in true }) == true else { return }
      left.wrappingSubtract(1, ordering: .relaxed)
      // More than may wait until the file joins.
      try file.write([UInt8](repeating: 8, count: 2 << 20), at: 0)
    }
    try file.sync()
    plan.set(nil)
    #expect(plan.failures.withLock { $0.isEmpty })
    // One for what was there, and one for each time that more came; a writer that never stops waits for the fifth.
    let syncCount = syncs.load(ordering: .relaxed)
    #expect(syncCount == min(writes, 4) + 1)
    #expect(!node.needsSync)
    try file.close()
    try vault.close()
  }

  @Test func `a sync that fails while others may write closes the file to changes`() throws {
    let fixture = try VaultFixture()
    let plan = Failing()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    let file = try vault.createFile(at: VaultPath("file"))
    try file.write(Self.noise(), at: 0)
    plan.isFailing.store(true, ordering: .relaxed)
    #expect(throws: VaultError.self) { try file.sync() }
    plan.isFailing.store(false, ordering: .relaxed)
    #expect(throws: VaultError.needsReopening) { try file.write([1], at: 0) }
    #expect(throws: VaultError.needsReopening) { try file.sync() }
  }

  /// The disk tells one of two that sync at the same time, and before that the other one that all is well.
  private final class FailingFirst: FaultPlan {
    private let other = Mutex<(@Sendable () -> Void)?>(nil)

    /// - Parameter other: syncs beside it.
    func set(_ other: @escaping @Sendable () -> Void) { self.other.withLock { $0 = other } }

    func willCall(_ call: SystemCall) throws(SystemError) {
      guard call == .sync, let other = other.withLock({ $0.take() }) else { return }
      other()
      throw SystemError(code: EIO, call: call.rawValue)
    }
  }

  @Test func `what a disk lost is told to all who sync the file`() throws {
    let fixture = try VaultFixture()
    let plan = FailingFirst()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    let file = try vault.createFile(at: VaultPath("file"))
    try file.write(Self.noise(), at: 0)
    let outcome = Mutex<Result<Void, VaultError>?>(nil)
    let hasEnded = DispatchSemaphore(value: 0)
    plan.set {
      Thread.detachNewThread {
        let result = Result { () throws(VaultError) in try file.sync() }
        outcome.withLock { $0 = result }
        hasEnded.signal()
      }
      // It is not to end before it knows: that it has not for a while is all that can be seen.
      if hasEnded.wait(timeout: .now() + 0.5) == .success { hasEnded.signal() }
    }
    #expect(throws: VaultError.self) { try file.sync() }
    hasEnded.wait()
    #expect(throws: VaultError.self) { try #require(outcome.withLock { $0 }).get() }
    try? vault.close()
    let again = try fixture.open()
    #expect(try again.attributes(at: VaultPath("file")).byteCount == 0)
    try again.close()
  }

  private final class Failing: FaultPlan {
    let isFailing = Atomic(false)
    func willCall(_ call: SystemCall) throws(SystemError) {
      guard call == .sync, isFailing.load(ordering: .relaxed) else { return }
      throw SystemError(code: EIO, call: call.rawValue)
    }
  }
}
