internal import Crypto
internal import Foundation

/// SHA-256 (FIPS 180-4).
public enum Digest {
  public static let byteCount = 32

  public static func sha256(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    SHA256.hash(data: Array(bytes)).withUnsafeBytes { Array($0) }
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
    clearingStack { KeyedHash(key: key).code(for: bytes) }
  }

  /// Compares in constant time.
  public static func isValid(_ code: [UInt8], for bytes: [UInt8], key: SecretKey) -> Bool {
    clearingStack { HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: bytes, using: key.key) }
  }
}

/// HMAC-SHA256 (RFC 2104) under one key, for many messages: the key's own blocks are hashed once.
///
/// For keys that stay as long as the process: what a code leaves on the stack is not overwritten.
public struct KeyedHash: Sendable, CustomStringConvertible, CustomReflectable {
  public static let byteCount = 32
  private let prepared: HMAC<SHA256>

  public init(key: SecretKey) { prepared = clearingStack { HMAC(key: key.key) } }

  public func code(for bytes: [UInt8]) -> [UInt8] {
    bytes.withUnsafeBytes { withCode(for: $0) { Array($0) } }
  }

  /// Lends the code of `bytes`, without an array.
  public func withCode<Result>(
    for bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    var hash = prepared
    hash.update(data: bytes)
    return try hash.finalize().withUnsafeBytes(body)
  }

  public var description: String { "<keyed hash>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
