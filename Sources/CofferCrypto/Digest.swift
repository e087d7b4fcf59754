internal import Crypto
internal import Foundation

/// SHA-256 (FIPS 180-4).
public enum Digest {
  public static let byteCount = 32

  public static func sha256(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    Array(SHA256.hash(data: Array(bytes)))
  }
}

/// SHA-256 over a stream of bytes.
public struct StreamingDigest {
  private var state = SHA256()

  public init() {}
  public mutating func update(_ bytes: UnsafeRawBufferPointer) { state.update(bufferPointer: bytes) }
  public mutating func update(_ bytes: [UInt8]) { state.update(data: bytes) }
  public func finalize() -> [UInt8] { Array(state.finalize()) }
}

/// HMAC-SHA256 (RFC 2104).
public enum MessageAuthentication {
  public static func code(for bytes: [UInt8], key: SecretKey) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: bytes, using: key.key))
  }

  /// Compares in constant time.
  public static func isValid(_ code: [UInt8], for bytes: [UInt8], key: SecretKey) -> Bool {
    HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: bytes, using: key.key)
  }
}
