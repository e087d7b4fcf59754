public import CofferSystem
internal import Crypto
internal import Foundation

/// A 256-bit symmetric key. Its bytes live in one buffer that is overwritten when the last copy goes.
public struct SecretKey: Sendable, CustomStringConvertible, CustomReflectable {
  public static let byteCount = 32
  let key: SymmetricKey

  init(_ key: SymmetricKey) { self.key = key }

  /// A new random key.
  public init() {
    // One call of the system; the library's own way takes one for each eight bytes.
    key = withUnsafeTemporaryAllocation(byteCount: Self.byteCount, alignment: 8) { bytes in
      defer { overwrite(bytes) }
      Randomness.fill(bytes)
      return SymmetricKey(data: UnsafeRawBufferPointer(bytes))
    }
  }

  /// A key from stored bytes. Throws `CryptoError.invalid` unless there are 32.
  public init(_ bytes: SecretBytes) throws(CryptoError) {
    guard bytes.count == Self.byteCount else { throw .invalid("key size") }
    key = bytes.withUnsafeBytes { SymmetricKey(data: $0) }
  }

  /// The key's bytes in a buffer of their own.
  public var secretBytes: SecretBytes {
    key.withUnsafeBytes { SecretBytes(copying: $0) }
  }

  /// HKDF-SHA256 (RFC 5869) with this key as input key material; see ``KeyDerivation/key(_:context:)``.
  public func derived(_ label: String, context: [UInt8] = []) -> SecretKey {
    KeyDerivation(from: self).key(label, context: context)
  }

  /// HKDF-SHA256 (RFC 5869) with secret bytes of any length as input key material; they must be as hard to guess as the
  /// key shall be.
  public static func derived(from secret: SecretBytes, _ label: String, context: [UInt8] = []) -> SecretKey {
    secret.withUnsafeBytes { SecretKey(SymmetricKey(data: $0)) }.derived(label, context: context)
  }

  /// A value that commits to this key and reveals nothing of it. AES-GCM does not commit to its key, so a commitment is
  /// stored beside what is sealed under it and compared before use.
  public var commitment: [UInt8] { KeyDerivation(from: self).commitment }

  public var description: String { "<secret key>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// HKDF-SHA256 (RFC 5869) for several keys from one, whose first step is done once. For as long as they are derived: unlike
/// a key it is not overwritten when it goes.
public struct KeyDerivation {
  /// HKDF's second step, under what the first one gave.
  private let expansion: HMAC<SHA256>

  public init(from key: SecretKey) {
    expansion = clearingStack {
      // HMAC-SHA256 under the salt, which is always the same and hashed once.
      var extraction = Self.extraction
      key.key.withUnsafeBytes { extraction.update(data: $0) }
      return HMAC(key: SymmetricKey(data: extraction.finalize()))
    }
  }

  /// - Parameters:
  ///   - label: what the derived key is for; unique for each purpose in the product.
  ///   - context: what it is bound to, such as an identifier; any length.
  public func key(_ label: String, context: [UInt8] = []) -> SecretKey {
    clearingStack { SecretKey(SymmetricKey(data: code(label, context))) }
  }

  /// As ``SecretKey/commitment``.
  public var commitment: [UInt8] { clearingStack { code("commitment", []).withUnsafeBytes { Array($0) } } }

  private func code(_ label: String, _ context: [UInt8]) -> HMAC<SHA256>.MAC {
    // The label's length goes first, so that no label and context can be read as another pair.
    // HKDF's second step, for as many bytes as SHA-256 has, is one HMAC of the info and a counter of 1. The library's own
    // function for it takes twice as long.
    var info = [UInt8]()
    info.reserveCapacity(label.utf8.count + context.count + 2)
    info.append(UInt8(label.utf8.count))
    info.append(contentsOf: label.utf8)
    info.append(contentsOf: context)
    info.append(1)
    var expansion = expansion
    info.withUnsafeBytes { expansion.update(data: $0) }
    return expansion.finalize()
  }

  private static let extraction = HMAC<SHA256>(key: SymmetricKey(data: Array("coffer".utf8)))
}

/// Compares without telling by its time where the first difference is.
public func equalInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  guard left.count == right.count else { return false }
  var difference: UInt8 = 0
  for index in left.indices { difference |= left[index] ^ right[index] }
  return difference == 0
}
