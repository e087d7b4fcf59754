internal import CofferCrypto
internal import CofferFiles
internal import CofferKeys
internal import CofferSystem
internal import CofferVault

/// The vault that a measurement works on, in `FOLDER/vault`.
struct BenchVault {
  let folder: String
  private let files = FileSystem()
  private var path: String { folder + "/vault" }
  private var keyStore: FileKeyStore { FileKeyStore(path: folder + "/key-store") }

  /// The parameters that `coffer init` chooses; what deriving costs is measured apart.
  static let costExponent = 17

  init(_ options: Options) throws {
    folder = try options.text("folder")
    try files.makeDirectories(folder + "/key-store")
  }

  func create(costExponent: Int = PasscodeDerivation.costExponents.lowerBound) throws -> Vault {
    let derivation = try PasscodeDerivation(costExponent: costExponent, salt: Randomness.bytes(32))
    return try Vault.create(at: path, keyStore: keyStore, passcode: Self.passcode, derivation: derivation)
  }

  func open() throws -> Vault {
    try Vault.open(at: path, keyStore: keyStore, passcode: { Self.passcode })
  }

  func wipe(keysDestroyed: () -> Void) throws {
    _ = try Vault.wipe(at: path, keyStore: keyStore, keysDestroyed: keysDestroyed)
  }

  static var passcode: SecretBytes {
    Array("a passcode for measuring".utf8).withUnsafeBytes { SecretBytes(copying: $0) }
  }
}

/// A file beside the vault, for the peers: plain calls, nothing encrypted.
struct PlainFile {
  let descriptor: OwnedDescriptor
  private let path: String

  init(_ name: String, in vault: BenchVault) throws {
    path = vault.folder + "/" + name
    descriptor = try FileSystem().open(path, [.readWrite, .create, .truncate])
  }

  func remove() throws { _ = try FileSystem().unlink(path) }
}
