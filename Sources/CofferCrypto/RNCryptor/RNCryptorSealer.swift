internal import CofferSystem
internal import Crypto
internal import Foundation

/// Makes data in RNCryptor's format, version 3, as a stream: ``header``, then what ``seal(_:count:isLast:)`` makes of each
/// portion, then ``tag()``.
public struct RNCryptorSealer: ~Copyable {
  /// What the data begins with.
  public let header: [UInt8]
  /// Bytes that a buffer for the last portion needs beyond its plaintext.
  public static let paddingByteCount = BlockChaining.blockSize

  private let key: SecretKey
  private var hash: HMAC<SHA256>
  private var iv: [UInt8]
  private var isComplete = false

  /// Salts and IV are random. Throws `RNCryptorError.emptyPassword`.
  public init(secret: RNCryptorSecret) throws(RNCryptorError) {
    try self.init(secret: secret, header: RNCryptorHeader(for: secret))
  }

  init(secret: RNCryptorSecret, header: RNCryptorHeader) throws(RNCryptorError) {
    let keys = try secret.keys(for: header)
    self.header = header.bytes
    key = keys.encryption
    iv = header.iv
    hash = clearingStack { HMAC(key: keys.authentication.key) }
    hash.update(data: self.header)
  }

  /// Encrypts the first `count` bytes of `buffer` where they lie, and returns how many they are then.
  ///
  /// A portion that is not the last has whole blocks of 16 bytes. The last one gets 1 to 16 bytes of padding, for which
  /// the buffer has room.
  public mutating func seal(_ buffer: UnsafeMutableRawBufferPointer, count: Int, isLast: Bool) -> Int {
    precondition(!isComplete, "nothing follows the last portion")
    var count = count
    if isLast {
      isComplete = true
      let padding = BlockChaining.blockSize - count % BlockChaining.blockSize
      for position in count..<(count + padding) { buffer[position] = UInt8(padding) }
      count += padding
    }
    let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    BlockChaining.encrypt(bytes, key: key, iv: &iv)
    hash.update(data: UnsafeRawBufferPointer(bytes))
    return count
  }

  /// The code that the data ends with, once the last portion is sealed.
  public func tag() -> [UInt8] {
    precondition(isComplete, "the last portion comes first")
    return Array(hash.finalize())
  }
}
