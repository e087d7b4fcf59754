import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVault

/// A vault in a temporary folder, with the cheapest derivation that is accepted.
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

  func create(files: FileSystem = FileSystem(), time: any TimeSource = SystemTime()) throws -> Vault {
    try Vault.create(
      at: vaultPath, keyStore: keyStore, passcode: Self.passcode(), derivation: Self.derivation(), files: files,
      time: time)
  }

  func open(
    _ passcode: String = "correct horse", files: FileSystem = FileSystem(), time: any TimeSource = SystemTime()
  ) throws -> Vault {
    try Vault.open(at: vaultPath, keyStore: keyStore, passcode: { Self.passcode(passcode) }, files: files, time: time)
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

/// A generator with a seed that a failing test prints.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  // SplitMix64 (Steele, Lea, Flood 2014).
  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }

  mutating func bytes(_ count: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(count + 8)
    while result.count < count { withUnsafeBytes(of: next()) { result.append(contentsOf: $0) } }
    result.removeLast(result.count - count)
    return result
  }
}
