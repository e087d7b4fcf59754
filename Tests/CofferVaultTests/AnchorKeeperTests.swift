import CofferKeys
import CofferSystem
import CofferTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// Two threads come to the anchor at once, in an order that need not be that of their commits.
@Suite struct AnchorKeeperTests {
  private struct StandingTime: TimeSource {
    func now() -> Timestamp { Timestamp(seconds: 1_700_000_000) }
  }

  private static func root(_ generation: UInt64) -> CommittedRoot {
    CommittedRoot(
      branch: [UInt8](repeating: 1, count: 16), generation: generation, commit: [UInt8](repeating: 2, count: 16))
  }

  @Test func `a vault is as new as its anchor where its generation is higher, or it is that very commit`() {
    let anchor = Anchor(
      branch: [UInt8](repeating: 1, count: 16), generation: 5, commit: [UInt8](repeating: 2, count: 16),
      keybagDigest: [UInt8](repeating: 3, count: 32), isBound: false)
    func accepts(_ generation: UInt64, commit: UInt8 = 2, branch: UInt8 = 1) -> Bool {
      anchor.accepts(
        CommittedRoot(
          branch: [UInt8](repeating: branch, count: 16), generation: generation,
          commit: [UInt8](repeating: commit, count: 16)))
    }
    #expect(accepts(5) && accepts(6) && accepts(6, commit: 9))
    #expect(!accepts(4) && !accepts(5, commit: 9) && !accepts(4, commit: 9))
    for generation in 4...6 as ClosedRange<UInt64> { #expect(!accepts(generation, branch: 9)) }
  }

  @Test func `an older commit that comes late takes nothing back, and a binding is written with the newest`() throws {
    let folder = try TemporaryFolder()
    let store = FileKeyStore(path: folder("keys"))
    let vault = VaultID()
    let keeper = AnchorKeeper(
      store, vault: vault, keybagDigest: [UInt8](repeating: 3, count: 32), isBound: false, time: StandingTime())
    func anchor() throws -> Anchor? {
      try store.read(.anchor, of: vault).map { bytes in try Anchor(decoding: bytes.withUnsafeBytes { Array($0) }) }
    }
    try keeper.follow(Self.root(7))
    #expect(try anchor()?.generation == 7)
    try keeper.follow(Self.root(6))
    try keeper.flush()
    #expect(try anchor()?.generation == 7)
    // Its root was read before the other thread's commit.
    try keeper.bind(Self.root(6))
    #expect(try anchor()?.generation == 7)
    #expect(try anchor()?.isBound == true)
    keeper.end()
    #expect(throws: VaultError.needsReopening) { try keeper.bind(Self.root(8)) }
    try keeper.follow(Self.root(9))
    try keeper.flush()
    #expect(try anchor()?.generation == 7)
  }

  /// Writes wait until somebody lets them go on.
  private final class SlowStore: KeyStore {
    let store: FileKeyStore
    let (hasBegun, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let isSlow = Mutex(true)

    init(_ store: FileKeyStore) { self.store = store }

    func read(_ item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) -> SecretBytes? {
      try store.read(item, of: vault)
    }
    func write(_ value: SecretBytes, as item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) {
      if isSlow.withLock({ $0 }) {
        hasBegun.signal()
        mayEnd.wait()
      }
      try store.write(value, as: item, of: vault)
    }
    func removeAll(of vault: VaultID, keeping kept: Set<KeyStoreItem>) throws(KeyStoreError) {
      try store.removeAll(of: vault, keeping: kept)
    }
    func withLock<Result>(of vault: VaultID, _ body: () throws -> Result) throws -> Result {
      try store.withLock(of: vault, body)
    }
  }

  @Test func `a commit does not wait while another's state is written, and is not forgotten`() throws {
    let folder = try TemporaryFolder()
    let store = SlowStore(FileKeyStore(path: folder("keys")))
    let vault = VaultID()
    let keeper = AnchorKeeper(
      store, vault: vault, keybagDigest: [UInt8](repeating: 3, count: 32), isBound: false, time: StandingTime())
    func generation() throws -> UInt64? {
      try store.read(.anchor, of: vault)
        .map { bytes in try Anchor(decoding: bytes.withUnsafeBytes { Array($0) }).generation }
    }
    let failures = Mutex(0)
    func follow(_ generation: UInt64) -> DispatchSemaphore {
      let hasEnded = DispatchSemaphore(value: 0)
      Thread {
        do { try keeper.follow(Self.root(generation)) } catch { failures.withLock { $0 += 1 } }
        hasEnded.signal()
      }.start()
      return hasEnded
    }
    let first = follow(7)
    store.hasBegun.wait()
    // Returns, though the other cannot. Only a failure waits so long.
    #expect(follow(8).wait(timeout: .now() + 30) == .success)
    #expect(try generation() == nil)
    store.isSlow.withLock { $0 = false }
    store.mayEnd.signal()
    first.wait()
    #expect(failures.withLock { $0 } == 0)
    #expect(try generation() == 7)
    try keeper.flush()
    #expect(try generation() == 8)
  }
}
