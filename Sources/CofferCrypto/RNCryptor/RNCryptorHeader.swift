internal import CofferSystem

/// What stands before the ciphertext in RNCryptor's format:
///
///     with a password   version (1) | options: 1 (1) | encryption salt (8) | HMAC salt (8) | IV (16)     34 bytes
///     with keys         version (1) | options: 0 (1) | IV (16)                                           18 bytes
///
/// The ciphertext follows (AES-256-CBC, PKCS#7 padding: 16 bytes at least), then HMAC-SHA256 over header and ciphertext.
/// Versions 2 and 3 differ in the password only. Source: the specification of RNCryptor's data format, versions 2 and 3.
struct RNCryptorHeader {
  /// Salts for the two keys of a password.
  struct Salts {
    let encryption: [UInt8]
    let authentication: [UInt8]
  }

  let version: UInt8
  /// Nil where keys are used.
  let salts: Salts?
  let iv: [UInt8]

  static let startByteCount = 2
  static let tagByteCount = 32
  private static let saltByteCount = 8
  private static let written: UInt8 = 3

  /// A header for new data, with random salts and IV.
  init(for secret: RNCryptorSecret) {
    version = Self.written
    iv = Randomness.bytes(BlockChaining.blockSize)
    switch secret {
    case .keys: salts = nil
    case .password:
      salts = Salts(
        encryption: Randomness.bytes(Self.saltByteCount), authentication: Randomness.bytes(Self.saltByteCount))
    }
  }

  /// How many bytes the header has, by the first two of them, or by fewer where the data has no more.
  static func byteCount(startingWith start: some Collection<UInt8>) throws(RNCryptorError) -> Int {
    guard let version = start.first else { throw .truncated }
    switch version {
    case 2, 3: break
    case 0, 1, 4: throw .unsupportedVersion(version)
    default: throw .notRNCryptor
    }
    switch start.dropFirst().first {
    case nil: throw .truncated
    case 0: return startByteCount + BlockChaining.blockSize
    case 1: return startByteCount + 2 * saltByteCount + BlockChaining.blockSize
    default: throw .notRNCryptor
    }
  }

  /// Parses a header of as many bytes as `byteCount(startingWith:)` says.
  init(_ bytes: [UInt8]) throws(RNCryptorError) {
    guard try bytes.count == Self.byteCount(startingWith: bytes) else { throw .truncated }
    version = bytes[0]
    iv = Array(bytes.suffix(BlockChaining.blockSize))
    let salts = bytes[Self.startByteCount...].dropLast(BlockChaining.blockSize)
    self.salts =
      salts.isEmpty
      ? nil
      : Salts(
        encryption: Array(salts.prefix(Self.saltByteCount)), authentication: Array(salts.suffix(Self.saltByteCount)))
  }

  var bytes: [UInt8] {
    [version, salts == nil ? 0 : 1] + (salts.map { $0.encryption + $0.authentication } ?? []) + iv
  }
}
