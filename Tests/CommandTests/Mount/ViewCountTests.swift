import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVault
import Testing

@testable import CofferContainer

/// While a container has views its vault favours who reads and writes at random.
struct ViewCountTests {
  private let container: Container
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    container = try Container.create(
      at: folder("vault"), keyStore: FileKeyStore(path: folder("keys")),
      passcode: Array("a passcode".utf8).withUnsafeBytes { SecretBytes(copying: $0) },
      derivation: PasscodeDerivation(costExponent: 15, salt: Randomness.bytes(32)), sniffer: ContentTypeHelper())
  }

  /// What a block more takes than the content has.
  private func padding(_ name: String) throws -> UInt64 {
    let count: UInt64 = 1 << 20
    let file = try container.vault.createFile(at: VaultPath(name))
    try [UInt8](repeating: 7, count: Int(count) + 1).withUnsafeBytes { bytes in
      try Result { try file.write(bytes, at: 0) }.get()
    }
    try file.close()
    return try container.vault.attributes(at: VaultPath(name)).storedByteCount - count
  }

  @Test func `files that grow get small blocks as long as there is a view`() throws {
    #expect(try padding("before") == 16 << 10)
    let views = try (0..<2).map { _ in try container.view(of: .root, isReadOnly: false) }
    #expect(try padding("two") == 4 << 10)
    views[0].end()
    #expect(try padding("one") == 4 << 10)
    views[1].end()
    #expect(try padding("none") == 16 << 10)
  }
}
