internal import CofferSystem
internal import Crypto
internal import Foundation

/// AES key wrap (RFC 3394): a 256-bit key under a 256-bit key, 40 bytes.
extension SecretKey {
  public static let wrappedByteCount = 40

  public func wrapped(under wrappingKey: SecretKey) throws(CryptoError) -> [UInt8] {
    do {
      return try clearingStack { Array(try AES.KeyWrap.wrap(key, using: wrappingKey.key)) }
    } catch {
      throw .invalid("key to wrap")
    }
  }

  /// Throws `CryptoError.notAuthentic` when `wrapped` was altered or wrapped under another key.
  public init(unwrapping wrapped: [UInt8], under wrappingKey: SecretKey) throws(CryptoError) {
    guard wrapped.count == Self.wrappedByteCount else { throw .notAuthentic }
    do {
      key = try clearingStack { try AES.KeyWrap.unwrap(wrapped, using: wrappingKey.key) }
    } catch {
      throw .notAuthentic
    }
  }

  /// A key that needs all of them: HKDF-SHA256 over this key followed by the others.
  public func combined(with others: [SecretKey], _ label: String, context: [UInt8]) -> SecretKey {
    let all = SecretBytes(count: (1 + others.count) * Self.byteCount) { buffer in
      for (place, part) in ([self] + others).enumerated() {
        part.key.withUnsafeBytes {
          UnsafeMutableRawBufferPointer(rebasing: buffer[(place * Self.byteCount)...]).copyMemory(from: $0)
        }
      }
    }
    return .derived(from: all, label, context: context)
  }
}
