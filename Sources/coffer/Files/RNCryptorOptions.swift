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

  /// The password or the keys.
  ///
  /// - Parameters:
  ///   - isNew: a password that is asked for is asked for twice.
  ///   - options: the passcode must not come from the same standard input.
  func secret(isNew: Bool, beside options: GlobalOptions) throws -> RNCryptorSecret {
    guard let keyFile else {
      guard passwordFile != "-" || options.passcodeFile != "-" else {
        throw Failure.usage("standard input can be the passcode or the password, not both")
      }
      let password = TypedSecret(name: "RNCryptor password", option: "--rncryptor-password-file")
      return .password(isNew ? try password.new(passwordFile) : try password.existing(passwordFile))
    }
    return .keys(try RNCryptorKeys(file: Self.read(keyFile)))
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
