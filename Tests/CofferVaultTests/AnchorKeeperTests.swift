import CofferKeys
import CofferSystem
import CofferTestSupport
import Testing

@testable import CofferVault

/// Two threads come to the anchor in an order that is not that of their commits.
@Suite struct AnchorKeeperTests {
  private struct StandingTime: TimeSource {
    func now() -> Timestamp { Timestamp(seconds: 1_700_000_000) }
  }

  private static func root(_ generation: UInt64) -> CommittedRoot {
    CommittedRoot(
      branch: [UInt8](repeating: 1, count: 16), generation: generation, sealed: [2])
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
}
