internal import CofferSystem
internal import Crypto
internal import CryptoExtras
internal import Foundation

/// AES-256 in CBC mode (NIST SP 800-38A) without padding, in place.
///
/// The library makes a buffer of its own for each call. Calls of 64 KiB keep those small, and in the processor's cache.
enum BlockChaining {
  static let blockSize = 16
  private static let callByteCount = 64 << 10

  /// Encrypts whole blocks. `iv` becomes that of the block that follows.
  static func encrypt(_ bytes: UnsafeMutableRawBufferPointer, key: SecretKey, iv: inout [UInt8]) {
    inCalls(bytes) { part in
      let ciphertext = try AES._CBC.encrypt(part, using: key.key, iv: AES._CBC.IV(ivBytes: iv), noPadding: true)
      iv = Array(ciphertext.suffix(blockSize))
      return ciphertext
    }
  }

  /// Decrypts whole blocks. Nothing is verified by this.
  static func decrypt(_ bytes: UnsafeMutableRawBufferPointer, key: SecretKey, iv: [UInt8]) {
    var iv = iv
    inCalls(bytes) { part in
      let next = Array(part.suffix(blockSize))
      defer { iv = next }
      return try AES._CBC.decrypt(part, using: key.key, iv: AES._CBC.IV(ivBytes: iv), noPadding: true)
    }
  }

  private static func inCalls(
    _ bytes: UnsafeMutableRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Data
  ) {
    precondition(bytes.count.isMultiple(of: blockSize))
    for start in stride(from: 0, to: bytes.count, by: callByteCount) {
      let part = UnsafeMutableRawBufferPointer(rebasing: bytes[start..<min(start + callByteCount, bytes.count)])
      // The library refuses sizes only, and these are right.
      let made = clearingStack { try? body(UnsafeRawBufferPointer(part)) }
      guard var result = made, result.count == part.count else {
        preconditionFailure("CBC refused whole blocks")
      }
      result.withUnsafeMutableBytes { made in
        part.copyMemory(from: UnsafeRawBufferPointer(made))
        overwrite(made)
      }
    }
  }
}
