internal import CofferSystem
internal import Crypto
internal import Foundation

/// AES-256-GCM (NIST SP 800-38D) with random 96-bit nonces, for values of moderate size.
///
/// Layout: nonce (12) ‖ ciphertext ‖ tag (16). A key must seal at most 2³² values; callers derive a key for each use.
public enum Sealing {
  public static let nonceByteCount = 12
  public static let tagByteCount = 16
  /// What sealing adds.
  public static let overhead = nonceByteCount + tagByteCount

  /// - Parameter prefix: bytes that the result begins with, before the nonce; they are neither sealed nor authenticated.
  public static func seal(
    _ plaintext: [UInt8], key: SecretKey, authenticating context: [UInt8], after prefix: [UInt8] = []
  ) throws(CryptoError) -> [UInt8] {
    let box = clearingStack {
      try? AES.GCM.seal(plaintext, using: key.key, nonce: randomNonce(), authenticating: context)
    }
    guard let box,
      let combined = box.combined
    else { throw .invalid("plaintext") }
    return [UInt8](unsafeUninitializedCapacity: prefix.count + combined.count) { buffer, initialized in
      let bytes = UnsafeMutableRawBufferPointer(buffer)
      bytes.copyBytes(from: prefix)
      combined.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: bytes[prefix.count...]).copyMemory(from: $0) }
      initialized = buffer.count
    }
  }

  /// Throws `CryptoError.notAuthentic` unless `sealed` was made by ``seal(_:key:authenticating:after:)`` with the same
  /// key and context.
  public static func open(
    _ sealed: [UInt8], key: SecretKey, authenticating context: [UInt8]
  ) throws(CryptoError) -> [UInt8] {
    try sealed.withUnsafeBytes { bytes in
      Result { () throws(CryptoError) in try open(bytes, key: key, authenticating: context) }
    }.get()
  }

  public static func open(
    _ sealed: UnsafeRawBufferPointer, key: SecretKey, authenticating context: [UInt8]
  ) throws(CryptoError) -> [UInt8] {
    do {
      var opened = try clearingStack {
        try AES.GCM.open(AES.GCM.SealedBox(combined: sealed), using: key.key, authenticating: context)
      }
      // What is small the allocator keeps as it is when it is freed.
      defer { opened.withUnsafeMutableBytes { overwrite($0) } }
      return Array(opened)
    } catch {
      throw .notAuthentic
    }
  }

  /// One call of the system draws it whole; the library's own takes two, which cost as much as sealing a small value.
  static func randomNonce() throws -> AES.GCM.Nonce {
    try withUnsafeTemporaryAllocation(byteCount: nonceByteCount, alignment: 8) { bytes in
      Randomness.fill(bytes)
      return try AES.GCM.Nonce(data: UnsafeRawBufferPointer(bytes))
    }
  }
}
