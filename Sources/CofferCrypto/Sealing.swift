internal import CofferSystem

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
    do {
      let byteCount = prefix.count + plaintext.count + overhead
      return try [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, initialized in
        let bytes = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<byteCount])
        bytes.copyBytes(from: prefix)
        let sealed = UnsafeMutableRawBufferPointer(rebasing: bytes[prefix.count...])
        let nonce = UnsafeMutableRawBufferPointer(rebasing: sealed[..<nonceByteCount])
        let tag = UnsafeMutableRawBufferPointer(rebasing: sealed[(sealed.count - tagByteCount)...])
        let ciphertext = UnsafeMutableRawBufferPointer(rebasing: sealed[nonceByteCount..<(sealed.count - tagByteCount)])
        Randomness.fill(nonce)
        try plaintext.withUnsafeBytes { plaintext in
          try context.withUnsafeBytes { context in
            try BufferCipher.with(key) { cipher in
              try cipher.seal(
                plaintext, nonce: UnsafeRawBufferPointer(nonce), authenticating: context, into: ciphertext, tag: tag)
            }
          }
        }
        initialized = byteCount
      }
    } catch {
      throw .invalid("plaintext")
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
    guard sealed.count >= overhead else { throw .notAuthentic }
    let end = sealed.count - tagByteCount
    do {
      return try [UInt8](unsafeUninitializedCapacity: end - nonceByteCount) { buffer, initialized in
        let plaintext = UnsafeMutableRawBufferPointer(
          rebasing: UnsafeMutableRawBufferPointer(buffer)[..<(end - nonceByteCount)])
        try context.withUnsafeBytes { context in
          try BufferCipher.with(key) { cipher in
            try cipher.open(
              UnsafeRawBufferPointer(rebasing: sealed[nonceByteCount..<end]),
              nonce: UnsafeRawBufferPointer(rebasing: sealed[..<nonceByteCount]),
              tag: UnsafeRawBufferPointer(rebasing: sealed[end...]), authenticating: context, into: plaintext)
          }
        }
        initialized = plaintext.count
      }
    } catch {
      throw .notAuthentic
    }
  }
}
