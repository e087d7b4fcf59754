public import CofferCrypto
public import CofferSystem

/// A team's private key in a file: one line, `coffer-team-key-1 ` and the Ed25519 seed in 64 hexadecimal digits.
public enum TeamKeyFile {
  private static let file = SecretLineFile(header: "coffer-team-key-1 ", byteCount: 32)

  /// Makes a new key and writes it to `path`, readable by its owner only.
  ///
  /// - Returns: the public key, which approvals and manifests carry.
  /// - Throws: `AppError.alreadyExists` when anything is at `path`, a symbolic link included.
  public static func create(at path: String, files: FileSystem = FileSystem()) throws(AppError) -> VerifyingKey {
    let key = SigningKey()
    try telling { () throws(SecretLineFile.Problem) in try file.create(at: path, holding: key.seed, files: files) }
    return key.verifyingKey
  }

  /// Reads a key.
  ///
  /// - Throws: `AppError.exposedKey` when anybody but the owner may read the file, and `AppError.malformedKey` when it
  ///   holds anything else.
  public static func read(_ path: String, files: FileSystem = FileSystem()) throws(AppError) -> SigningKey {
    let seed = try telling { () throws(SecretLineFile.Problem) in try file.read(path, files: files) }
    guard let key = try? SigningKey(seed: seed) else { throw .malformedKey }
    return key
  }

  private static func telling<Result>(
    _ body: () throws(SecretLineFile.Problem) -> Result
  ) throws(AppError) -> Result {
    do throws(SecretLineFile.Problem) {
      return try body()
    } catch {
      switch error {
      case .alreadyExists: throw .alreadyExists
      case .malformed: throw .malformedKey
      case .exposed: throw .exposedKey
      case .system(let error): throw .system(error)
      }
    }
  }
}
