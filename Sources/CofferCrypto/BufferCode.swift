internal import Crypto
internal import Foundation

/// HMAC-SHA256 (RFC 2104) from buffer to buffer.
///
/// There are two ways to it, as to a cipher (``AuthenticatedCipher``): ``DirectCode`` where the library's functions can be called,
/// and ``CopyingCode`` elsewhere. Whoever gives them a key overwrites what they leave of it on the stack (`clearingStack`).
protocol AuthenticationCode: Sendable {
  /// One message under a key.
  ///
  /// - Parameter code: room for 32 bytes.
  static func write(
    _ code: UnsafeMutableRawBufferPointer, for message: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer)

  /// For many messages under `key`, whose own blocks are hashed once.
  init(key: UnsafeRawBufferPointer)

  /// - Parameter code: room for 32 bytes.
  func write(_ code: UnsafeMutableRawBufferPointer, for message: UnsafeRawBufferPointer)
}

#if canImport(CCryptoBoringSSL) && !canImport(CryptoKit)
  internal import CCryptoBoringSSL

  typealias BufferCode = DirectCode

  /// The code by the functions on which swift-crypto itself stands.
  ///
  /// swift-crypto's own `HMAC` is generic over its hash function in a module of its own, where nobody makes it one for SHA-256: of
  /// short messages' codes, hashing was a tenth.
  final class DirectCode: AuthenticationCode {
    /// What the key's blocks gave. Written once, and copied by whoever has a message.
    private nonisolated(unsafe) let prepared: UnsafeMutablePointer<HMAC_CTX>

    init(key: UnsafeRawBufferPointer) {
      prepared = .allocate(capacity: 1)
      CCryptoBoringSSL_HMAC_CTX_init(prepared)
      let isDone = CCryptoBoringSSL_HMAC_Init_ex(
        prepared, key.baseAddress, key.count, CCryptoBoringSSL_EVP_sha256(), nil)
      precondition(isDone == 1, "HMAC")
    }

    deinit {
      CCryptoBoringSSL_HMAC_CTX_cleanup(prepared)
      prepared.deallocate()
    }

    func write(_ code: UnsafeMutableRawBufferPointer, for message: UnsafeRawBufferPointer) {
      precondition(code.count == Digest.byteCount)
      withUnsafeTemporaryAllocation(of: HMAC_CTX.self, capacity: 1) { memory in
        guard let context = memory.baseAddress else { preconditionFailure("HMAC") }
        CCryptoBoringSSL_HMAC_CTX_init(context)
        defer { CCryptoBoringSSL_HMAC_CTX_cleanup(context) }
        var byteCount: UInt32 = 0
        let isDone =
          withExtendedLifetime(self) { CCryptoBoringSSL_HMAC_CTX_copy_ex(context, prepared) } == 1
          && CCryptoBoringSSL_HMAC_Update(context, message.bytes, message.count) == 1
          && CCryptoBoringSSL_HMAC_Final(context, code.bytes, &byteCount) == 1
        precondition(isDone && byteCount == Digest.byteCount, "HMAC")
      }
    }

    static func write(
      _ code: UnsafeMutableRawBufferPointer, for message: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer
    ) {
      precondition(code.count == Digest.byteCount)
      var byteCount: UInt32 = 0
      let written = CCryptoBoringSSL_HMAC(
        CCryptoBoringSSL_EVP_sha256(), key.baseAddress, key.count, message.bytes, message.count, code.bytes, &byteCount)
      precondition(written != nil && byteCount == Digest.byteCount, "HMAC")
    }
  }
#else
  typealias BufferCode = CopyingCode
#endif

/// The code by swift-crypto's `HMAC`, which is CryptoKit's where there is that.
struct CopyingCode: AuthenticationCode {
  private let prepared: HMAC<SHA256>

  init(key: UnsafeRawBufferPointer) { prepared = HMAC(key: SymmetricKey(data: key)) }

  func write(_ code: UnsafeMutableRawBufferPointer, for message: UnsafeRawBufferPointer) {
    precondition(code.count == Digest.byteCount)
    var hash = prepared
    hash.update(data: message)
    hash.finalize().withUnsafeBytes { code.copyMemory(from: $0) }
  }

  static func write(
    _ code: UnsafeMutableRawBufferPointer, for message: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer
  ) {
    CopyingCode(key: key).write(code, for: message)
  }
}
