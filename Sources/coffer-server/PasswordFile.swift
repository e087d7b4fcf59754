internal import CofferServer
internal import CofferSystem

/// A password from a file or standard input.
enum PasswordFile {
  private static let limit = 4096

  /// The first line of `path` without its end; `-` is standard input. Throws `SystemError` and `ServerError.invalid`.
  static func read(_ path: String) throws -> SecretBytes {
    let file = path == "-" ? OwnedDescriptor.standardInput : try FileSystem().open(path, .readOnly)
    var bytes = try file.contents(limit: limit)
    defer { bytes.withUnsafeMutableBytes { overwrite($0) } }
    let end = bytes.firstIndex { $0 == 10 || $0 == 13 } ?? bytes.endIndex
    guard bytes[end...].allSatisfy({ $0 == 10 || $0 == 13 }) else {
      throw ServerError.invalid("the password file has more than one line")
    }
    return bytes[..<end].withUnsafeBytes { SecretBytes(copying: $0) }
  }
}
