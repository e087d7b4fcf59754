internal import CofferSystem
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
    [UInt8](unsafeUninitializedCapacity: Digest.byteCount) { buffer, initialized in
      let code = UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[..<Digest.byteCount]))
      clearingStack {
        key.key.withUnsafeBytes { key in bytes.withUnsafeBytes { BufferCode.write(code, for: $0, key: key) } }
      }
      initialized = Digest.byteCount
    }
  }

  /// Compares in constant time.
  public static func isValid(_ code: [UInt8], for bytes: [UInt8], key: SecretKey) -> Bool {
    withUnsafeTemporaryAllocation(byteCount: Digest.byteCount, alignment: 8) { right in
      // What would be valid here is nobody's to find.
      defer { overwrite(right) }
      clearingStack {
        key.key.withUnsafeBytes { key in bytes.withUnsafeBytes { BufferCode.write(right, for: $0, key: key) } }
      }
      return code.withUnsafeBytes { equalInConstantTime($0, UnsafeRawBufferPointer(right)) }
    }
  }
}

/// HMAC-SHA256 (RFC 2104) under one key, for many messages: the key's own blocks are hashed once.
///
/// For keys that stay as long as the process: what a code leaves on the stack is not overwritten.
public struct KeyedHash: Sendable, CustomStringConvertible, CustomReflectable {
  public static let byteCount = Digest.byteCount
  private let prepared: BufferCode

  public init(key: SecretKey) { prepared = clearingStack { key.key.withUnsafeBytes { BufferCode(key: $0) } } }

  public func code(for bytes: [UInt8]) -> [UInt8] {
    bytes.withUnsafeBytes { withCode(for: $0) { Array($0) } }
  }

  /// Lends the code of `bytes`, without an array.
  public func withCode<Result>(
    for bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try withUnsafeTemporaryAllocation(byteCount: Self.byteCount, alignment: 8) { code in
      prepared.write(code, for: bytes)
      return try body(UnsafeRawBufferPointer(code))
    }
  }

  public var description: String { "<keyed hash>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
