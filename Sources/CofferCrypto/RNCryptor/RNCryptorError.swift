/// Why data in RNCryptor's format is not opened, or not made. No case carries a key, a password or content.
public enum RNCryptorError: Error, Equatable, Sendable {
  /// The first bytes are not those of the format.
  case notRNCryptor
  /// The format's version is not read here. Version 1 does not protect its header, and version 4 was never released.
  case unsupportedVersion(UInt8)
  /// The data ends too early, or has a length that the format cannot have.
  case truncated
  /// The data does not fit its code: a wrong password, wrong keys, or changed bytes. The format cannot tell which.
  case notAuthentic
  /// The code fits, and the padding inside is not what the format wants: whoever made the data made it so.
  case malformedPadding
  /// The data was encrypted with a password, and keys were given.
  case needsPassword
  /// The data was encrypted with keys, and a password was given.
  case needsKeys
  /// The format has no empty passwords.
  case emptyPassword
  /// What was given is not two keys: neither 64 bytes nor 128 hexadecimal digits.
  case malformedKeys
}

extension RNCryptorError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notRNCryptor: "this is not RNCryptor's format"
    case .unsupportedVersion(1):
      "RNCryptor version 1 is not read: it does not protect its header; open it with the program that made it, and "
        + "encrypt it as version 3"
    case .unsupportedVersion(4): "RNCryptor version 4 is not read: it is a draft that was never released"
    case .unsupportedVersion(let version): "RNCryptor version \(version) is not read; versions 2 and 3 are"
    case .truncated: "the encrypted data is not whole: it ends too early, or something was added to it"
    case .notAuthentic:
      "the password (or the keys) is wrong, or the file was changed; the format cannot tell which"
    case .malformedPadding: "the encrypted data is genuine, but does not end as the format wants"
    case .needsPassword: "the data was encrypted with a password, and not with keys"
    case .needsKeys: "the data was encrypted with keys, and not with a password"
    case .emptyPassword: "the password is empty; the format has no empty passwords"
    case .malformedKeys:
      "not two keys: 64 bytes (32 for encryption, then 32 for authentication) or 128 hexadecimal digits are needed"
    }
  }
}
