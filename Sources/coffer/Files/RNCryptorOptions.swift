internal import ArgumentParser
internal import CofferCrypto
internal import CofferSystem

/// The foreign format, and what content is encrypted with in it.
struct RNCryptorOptions: ParsableArguments {
  @Flag(name: .customLong("rncryptor"), help: "RNCryptor's format. Needed: it is the only one so far.")
  var isRNCryptor = false

  @Option(
    name: .customLong("rncryptor-password-file"),
    help: ArgumentHelp(
      "A file with the password; - is standard input. Without this and without keys it is asked for.",
      valueName: "file"))
  var passwordFile: String?

  @Option(
    name: .customLong("rncryptor-key-file"),
    help: ArgumentHelp(
      "A file with two keys in place of a password: 64 bytes, 32 for encryption and 32 for the HMAC, or 128 "
        + "hexadecimal digits.", valueName: "file"))
  var keyFile: String?

  func validate() throws {
    guard isRNCryptor else { throw ValidationError("Name the format: --rncryptor.") }
    guard passwordFile == nil || keyFile == nil else {
      throw ValidationError("Give --rncryptor-password-file or --rncryptor-key-file, not both.")
    }
  }

  private static let password = TypedSecret(name: "RNCryptor password", option: "--rncryptor-password-file")

  /// The password or the keys, where a file has them; nil where the password is to be asked for.
  ///
  /// - Parameter options: the passcode must not come from the same standard input.
  func fromFile(beside options: GlobalOptions) throws -> RNCryptorSecret? {
    if let keyFile { return .keys(try RNCryptorKeys(file: Self.read(keyFile))) }
    guard let passwordFile else { return nil }
    guard passwordFile != "-" || options.passcodeFile != "-" else {
      throw Failure.usage("standard input can be the passcode or the password, not both")
    }
    return .password(try Self.password.existing(passwordFile))
  }

  /// Asks for the password: twice for one that `isNew`.
  static func asked(isNew: Bool) throws -> RNCryptorSecret {
    .password(isNew ? try password.new(nil) : try password.existing(nil))
  }

  private static func read(_ file: String) throws -> SecretBytes {
    let descriptor = try FileSystem().openNamed(file)
    // One byte more, so that a longer file is not taken for its beginning.
    var bytes = [UInt8](repeating: 0, count: RNCryptorKeys.fileByteCount + 1)
    defer { bytes.withUnsafeMutableBytes { overwrite($0) } }
    let count = try bytes.withUnsafeMutableBytes { try descriptor.readFully(into: $0) }
    return bytes[..<count].withUnsafeBytes { SecretBytes(copying: $0) }
  }
}
