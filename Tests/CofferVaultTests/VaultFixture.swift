import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVault
import CofferVaultTestSupport
import Foundation

/// A vault in a temporary folder, with the cheapest derivation that is accepted. Nothing commits by itself, unless the
/// options say so: on a slow machine a timer would run in the middle of a test.
final class VaultFixture: Sendable {
  let folder: TemporaryFolder
  var vaultPath: String { folder("vault") }
  let keyStore: FileKeyStore

  init() throws {
    folder = try TemporaryFolder()
    keyStore = FileKeyStore(path: folder("keys"))
  }

  static func passcode(_ text: String = "correct horse") -> SecretBytes {
    Array(text.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
  }

  static func derivation() throws -> PasscodeDerivation {
    try PasscodeDerivation(costExponent: 14, salt: Randomness.bytes(16))
  }

  func create(
    files: FileSystem = FileSystem(), time: any TimeSource = SystemTime(), options: VaultOptions = TestVault.options
  ) throws -> Vault {
    try Vault.create(
      at: vaultPath, keyStore: keyStore, passcode: Self.passcode(), derivation: Self.derivation(), files: files,
      time: time, options: options)
  }

  func open(
    _ passcode: String = "correct horse", files: FileSystem = FileSystem(), time: any TimeSource = SystemTime(),
    options: VaultOptions = TestVault.options
  ) throws -> Vault {
    try Vault.open(
      at: vaultPath, keyStore: keyStore, passcode: { Self.passcode(passcode) }, files: files, time: time,
      options: options)
  }

  /// Copies everything, as a crash at this moment leaves it.
  func copyAsAfterCrash() throws {
    try FileManager.default.createDirectory(
      atPath: folder("crashed"), withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    for name in ["vault", "keys"] {
      try FileManager.default.copyItem(atPath: folder(name), toPath: folder("crashed/\(name)"))
    }
  }

  /// Opens that copy.
  func openAfterCrash(files: FileSystem = FileSystem()) throws -> Vault {
    try Vault.open(
      at: folder("crashed/vault"), keyStore: FileKeyStore(path: folder("crashed/keys")),
      passcode: { Self.passcode() }, files: files)
  }

  /// A source file with these bytes.
  func source(_ bytes: [UInt8], name: String = "source") throws -> ImportSource {
    let file = try FileSystem().open(folder(name), [.readWrite, .create, .truncate])
    try file.writeAll(bytes)
    return ImportSource(
      descriptor: file, byteCount: UInt64(bytes.count), permissions: 0o640,
      modified: Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_789))
  }
}

extension Vault {
  /// The whole content of a file.
  func contents(of path: VaultPath) throws -> [UInt8] {
    let snapshot = try snapshot(of: path)
    var bytes = [UInt8](repeating: 0xaa, count: Int(snapshot.byteCount) + 7)
    let count = try bytes.withUnsafeMutableBytes { try snapshot.read(at: 0, into: $0) }
    return Array(bytes[..<count])
  }
}
