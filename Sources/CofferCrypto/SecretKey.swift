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

/// HKDF-SHA256 (RFC 5869) for several keys from one, whose first step is done once.
public struct KeyDerivation: Sendable {
  /// What the first step gave.
  private let expansion: SecretKey

  public init(from key: SecretKey) {
    expansion = key.key.withUnsafeBytes { key in
      Self.salt.withUnsafeBytes { salt in SecretKey(code: key, under: salt) }
    }
  }

  /// - Parameters:
  ///   - label: what the derived key is for; unique for each purpose in the product.
  ///   - context: what it is bound to, such as an identifier; any length.
  public func key(_ label: String, context: [UInt8] = []) -> SecretKey {
    withInfo(label, context) { info in expansion.key.withUnsafeBytes { SecretKey(code: info, under: $0) } }
  }

  /// As ``SecretKey/commitment``.
  public var commitment: [UInt8] {
    withInfo("commitment", []) { info in
      [UInt8](unsafeUninitializedCapacity: Digest.byteCount) { buffer, initialized in
        let code = UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[..<Digest.byteCount]))
        clearingStack { expansion.key.withUnsafeBytes { BufferCode.write(code, for: info, key: $0) } }
        initialized = Digest.byteCount
      }
    }
  }

  /// Lends what the second step takes: for as many bytes as SHA-256 has, that is one HMAC of the info and a counter of 1.
  private func withInfo<Result>(
    _ label: String, _ context: [UInt8], _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result {
    let labelCount = label.utf8.count
    return withUnsafeTemporaryAllocation(byteCount: labelCount + context.count + 2, alignment: 1) { info in
      // The label's length goes first, so that no label and context can be read as another pair.
      info[0] = UInt8(labelCount)
      UnsafeMutableRawBufferPointer(rebasing: info[1...]).copyBytes(from: label.utf8)
      UnsafeMutableRawBufferPointer(rebasing: info[(1 + labelCount)...]).copyBytes(from: context)
      info[info.count - 1] = 1
      return body(UnsafeRawBufferPointer(info))
    }
  }

  private static let salt = Array("coffer".utf8)
}

extension SecretKey {
  /// The HMAC of `message` under `key`.
  fileprivate init(code message: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer) {
    self = clearingStack {
      withUnsafeTemporaryAllocation(byteCount: Digest.byteCount, alignment: 8) { code in
        defer { overwrite(code) }
        BufferCode.write(code, for: message, key: key)
        return SecretKey(SymmetricKey(data: UnsafeRawBufferPointer(code)))
      }
    }
  }
}

/// Compares without telling by its time where the first difference is.
public func equalInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  left.withUnsafeBytes { left in right.withUnsafeBytes { equalInConstantTime(left, $0) } }
}

/// As the one for arrays.
func equalInConstantTime(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
  guard left.count == right.count else { return false }
  var difference: UInt8 = 0
  for index in left.indices { difference |= left[index] ^ right[index] }
  return difference == 0
}
