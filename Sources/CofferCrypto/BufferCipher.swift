internal import CofferSystem
internal import Crypto
internal import Foundation

/// AES-256-GCM (NIST SP 800-38D) under one key, from buffer to buffer.
///
/// There are two ways to it: ``DirectCipher`` where the library's functions can be called, and ``CopyingCipher`` elsewhere.
protocol AuthenticatedCipher: ~Copyable {
  /// Lends the cipher to `body`, which does nothing else, for the stack that it used is overwritten behind it.
  static func with<Result>(_ key: SecretKey, _ body: (borrowing Self) throws -> Result) throws -> Result

  /// Seals `plaintext` into `ciphertext`, which has the same count and may be the same memory.
  ///
  /// - Parameters:
  ///   - nonce: 12 bytes that were never used with the key.
  ///   - tag: room for 16 bytes.
  func seal(
    _ plaintext: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer,
    authenticating authenticated: UnsafeRawBufferPointer,
    into ciphertext: UnsafeMutableRawBufferPointer, tag: UnsafeMutableRawBufferPointer
  ) throws

  /// Opens `ciphertext` into `plaintext`, which has the same count and may be the same memory. Throws
  /// `CryptoError.notAuthentic`, and leaves zeros, where it is not what was sealed.
  func open(
    _ ciphertext: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer, tag: UnsafeRawBufferPointer,
    authenticating authenticated: UnsafeRawBufferPointer, into plaintext: UnsafeMutableRawBufferPointer
  ) throws
}

#if canImport(CCryptoBoringSSL) && !canImport(CryptoKit)
  internal import CCryptoBoringSSL

  typealias BufferCipher = DirectCipher

  /// The cipher by the functions on which swift-crypto itself stands.
  ///
  /// swift-crypto's own `AES.GCM` takes and gives values: of each block it makes two copies, in memory that it allocates and
  /// that is overwritten when it goes, and the key's schedule anew.
  struct DirectCipher: AuthenticatedCipher, ~Copyable {
    private let context: UnsafePointer<EVP_AEAD_CTX>

    private init(_ context: UnsafePointer<EVP_AEAD_CTX>) { self.context = context }

    static func with<Result>(_ key: SecretKey, _ body: (borrowing DirectCipher) throws -> Result) throws -> Result {
      try clearingStack {
        try withUnsafeTemporaryAllocation(of: EVP_AEAD_CTX.self, capacity: 1) { memory in
          guard let context = memory.baseAddress else { throw CryptoError.invalid("key") }
          CCryptoBoringSSL_EVP_AEAD_CTX_zero(context)
          // The library leaves the key's schedule where it is.
          defer {
            CCryptoBoringSSL_EVP_AEAD_CTX_cleanup(context)
            overwrite(UnsafeMutableRawBufferPointer(memory))
          }
          let isMade = key.key.withUnsafeBytes { key in
            CCryptoBoringSSL_EVP_AEAD_CTX_init(
              context, CCryptoBoringSSL_EVP_aead_aes_256_gcm(), key.bytes, key.count, Sealing.tagByteCount, nil)
          }
          guard isMade == 1 else { throw CryptoError.invalid("key") }
          return try body(DirectCipher(context))
        }
      }
    }

    func seal(
      _ plaintext: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer,
      authenticating authenticated: UnsafeRawBufferPointer,
      into ciphertext: UnsafeMutableRawBufferPointer, tag: UnsafeMutableRawBufferPointer
    ) throws {
      precondition(plaintext.count == ciphertext.count && tag.count == Sealing.tagByteCount)
      var tagByteCount = 0
      let isDone = CCryptoBoringSSL_EVP_AEAD_CTX_seal_scatter(
        context, ciphertext.bytes, tag.bytes, &tagByteCount, tag.count, nonce.bytes, nonce.count, plaintext.bytes,
        plaintext.count,
        nil, 0, authenticated.bytes, authenticated.count)
      guard isDone == 1, tagByteCount == Sealing.tagByteCount else { throw CryptoError.invalid("plaintext") }
    }

    func open(
      _ ciphertext: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer, tag: UnsafeRawBufferPointer,
      authenticating authenticated: UnsafeRawBufferPointer, into plaintext: UnsafeMutableRawBufferPointer
    ) throws {
      precondition(plaintext.count == ciphertext.count && tag.count == Sealing.tagByteCount)
      let isDone = CCryptoBoringSSL_EVP_AEAD_CTX_open_gather(
        context, plaintext.bytes, nonce.bytes, nonce.count, ciphertext.bytes, ciphertext.count, tag.bytes, tag.count,
        authenticated.bytes, authenticated.count)
      guard isDone == 1 else {
        plaintext.initializeMemory(as: UInt8.self, repeating: 0)
        throw CryptoError.notAuthentic
      }
    }
  }
#else
  typealias BufferCipher = CopyingCipher
#endif

/// The cipher by swift-crypto's `AES.GCM`, which is CryptoKit's where there is that.
struct CopyingCipher: AuthenticatedCipher, ~Copyable {
  private let key: SecretKey

  private init(_ key: SecretKey) { self.key = key }

  static func with<Result>(_ key: SecretKey, _ body: (borrowing CopyingCipher) throws -> Result) throws -> Result {
    try clearingStack { try body(CopyingCipher(key)) }
  }

  func seal(
    _ plaintext: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer,
    authenticating authenticated: UnsafeRawBufferPointer,
    into ciphertext: UnsafeMutableRawBufferPointer, tag: UnsafeMutableRawBufferPointer
  ) throws {
    precondition(plaintext.count == ciphertext.count && tag.count == Sealing.tagByteCount)
    let box = try AES.GCM.seal(
      plaintext, using: key.key, nonce: AES.GCM.Nonce(data: nonce), authenticating: authenticated)
    ciphertext.copyBytes(from: box.ciphertext)
    tag.copyBytes(from: box.tag)
  }

  func open(
    _ ciphertext: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer, tag: UnsafeRawBufferPointer,
    authenticating authenticated: UnsafeRawBufferPointer, into plaintext: UnsafeMutableRawBufferPointer
  ) throws {
    precondition(plaintext.count == ciphertext.count && tag.count == Sealing.tagByteCount)
    do {
      let box = try AES.GCM.SealedBox(nonce: AES.GCM.Nonce(data: nonce), ciphertext: ciphertext, tag: tag)
      var opened = try AES.GCM.open(box, using: key.key, authenticating: authenticated)
      // What is small the allocator keeps as it is when it is freed.
      defer { opened.withUnsafeMutableBytes { overwrite($0) } }
      plaintext.copyBytes(from: opened)
    } catch {
      plaintext.initializeMemory(as: UInt8.self, repeating: 0)
      throw CryptoError.notAuthentic
    }
  }
}
