internal import CofferSystem
internal import Crypto
internal import Foundation

/// AES key wrap (RFC 3394): a 256-bit key under a 256-bit key, 40 bytes.
extension SecretKey {
  public static let wrappedByteCount = 40

  public func wrapped(under wrappingKey: SecretKey) throws(CryptoError) -> [UInt8] {
    do {
      return Array(try AES.KeyWrap.wrap(key, using: wrappingKey.key))
    } catch {
      throw .invalid("key to wrap")
    }
  }

  /// Throws `CryptoError.notAuthentic` when `wrapped` was altered or wrapped under another key.
  public init(unwrapping wrapped: [UInt8], under wrappingKey: SecretKey) throws(CryptoError) {
    guard wrapped.count == Self.wrappedByteCount else { throw .notAuthentic }
    do {
      key = try AES.KeyWrap.unwrap(wrapped, using: wrappingKey.key)
    } catch {
      throw .notAuthentic
    }
  }

  /// A key that needs both: HKDF-SHA256 over this key followed by `other`.
  public func combined(with other: SecretKey, _ label: String, context: [UInt8]) -> SecretKey {
    let both = SecretBytes(count: 2 * Self.byteCount) { buffer in
      key.withUnsafeBytes { buffer.copyMemory(from: $0) }
      other.key.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: buffer[Self.byteCount...]).copyMemory(from: $0)
      }
    }
    let input = both.withUnsafeBytes { SecretKey(SymmetricKey(data: $0)) }
    return input.derived(label, context: context)
  }
}
