public import CofferSystem
internal import Crypto
internal import CryptoExtras
internal import Foundation

/// What data in RNCryptor's format is encrypted with.
public enum RNCryptorSecret: Sendable {
  /// UTF-8.
  case password(SecretBytes)
  case keys(RNCryptorKeys)
}

/// The two keys of RNCryptor's format.
public struct RNCryptorKeys: Sendable {
  /// For AES-256-CBC.
  let encryption: SecretKey
  /// For HMAC-SHA256.
  let authentication: SecretKey

  init(encryption: SecretKey, authentication: SecretKey) {
    self.encryption = encryption
    self.authentication = authentication
  }

  /// Bytes of a key file at most: hexadecimal digits and a line break.
  public static let fileByteCount = 4 * SecretKey.byteCount + 2

  /// Keys from a file: 64 bytes, of which the first 32 are for encryption, or the same as 128 hexadecimal digits in one
  /// line. Throws `RNCryptorError.malformedKeys` for anything else.
  public init(file: SecretBytes) throws(RNCryptorError) {
    let bytes = try file.withUnsafeBytes { Self.decoded($0) }.get()
    do {
      encryption = try bytes.part(0)
      authentication = try bytes.part(SecretKey.byteCount)
    } catch {
      throw .malformedKeys
    }
  }

  private static func decoded(_ file: UnsafeRawBufferPointer) -> Result<SecretBytes, RNCryptorError> {
    let count = 2 * SecretKey.byteCount
    if file.count == count { return .success(SecretBytes(copying: file)) }
    var digits = file[...]
    if digits.last == UInt8(ascii: "\n") { digits.removeLast() }
    if digits.last == UInt8(ascii: "\r") { digits.removeLast() }
    // Digit by digit into the buffer: a string or an array would leave a copy of the keys.
    var isWhole = digits.count == 2 * count
    let bytes = SecretBytes(count: count) { bytes in
      guard isWhole else { return }
      for index in bytes.indices {
        let position = digits.startIndex + 2 * index
        guard let high = Self.value(digits[position]), let low = Self.value(digits[position + 1]) else {
          isWhole = false
          return
        }
        bytes[index] = high << 4 | low
      }
    }
    return isWhole ? .success(bytes) : .failure(.malformedKeys)
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}

extension SecretBytes {
  /// The key that begins at `offset`.
  fileprivate func part(_ offset: Int) throws -> SecretKey {
    try withUnsafeBytes { bytes in
      let part = bytes[offset..<(offset + SecretKey.byteCount)]
      return try SecretKey(SecretBytes(copying: UnsafeRawBufferPointer(rebasing: part)))
    }
  }
}

extension RNCryptorSecret {
  /// The keys for data with this header. Throws `needsPassword` or `needsKeys` where the header wants the other form.
  func keys(for header: RNCryptorHeader) throws(RNCryptorError) -> RNCryptorKeys {
    switch (self, header.salts) {
    case (.keys(let keys), nil): return keys
    case (.keys, .some): throw .needsPassword
    case (.password, nil): throw .needsKeys
    case (.password(let password), let salts?):
      guard password.count > 0 else { throw .emptyPassword }
      let count = header.version == 2 ? Self.version2ByteCount(password) : password.count
      return RNCryptorKeys(
        encryption: try Self.key(password, count, salts.encryption),
        authentication: try Self.key(password, count, salts.authentication))
    }
  }

  /// PBKDF2 (RFC 8018) with HMAC-SHA1 and 10,000 rounds: few by now, and the format has no others.
  private static func key(
    _ password: SecretBytes, _ count: Int, _ salt: [UInt8]
  ) throws(RNCryptorError) -> SecretKey {
    do {
      return try clearingStack(.large) {
        try password.withUnsafeBytes { bytes in
          SecretKey(
            try KDF.Insecure.PBKDF2.deriveKey(
              from: UnsafeRawBufferPointer(rebasing: bytes[..<count]), salt: salt, using: .insecureSHA1,
              outputByteCount: SecretKey.byteCount, unsafeUncheckedRounds: 10_000))
        }
      }
    } catch {
      throw .notAuthentic
    }
  }

  /// Version 2 cuts a password to as many bytes as it has characters, which is an error that was mended with version 3.
  /// The program that wrote it counted UTF-16 code units: one for each byte that begins a character, and one more for a
  /// character outside the basic plane, whose UTF-8 begins with F0 or above.
  private static func version2ByteCount(_ password: SecretBytes) -> Int {
    password.withUnsafeBytes { bytes in
      bytes.reduce(0) { count, byte in count + (byte & 0xc0 == 0x80 ? 0 : byte >= 0xf0 ? 2 : 1) }
    }
  }
}
