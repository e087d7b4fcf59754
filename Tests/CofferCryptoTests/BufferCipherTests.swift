import CofferSystem
import Testing

@testable import CofferCrypto

/// The two ways to AES-GCM are one construction.
@Suite struct BufferCipherTests {
  private struct Sealed {
    var ciphertext: [UInt8]
    var tag = [UInt8](repeating: 0, count: Sealing.tagByteCount)
  }

  private let key = SecretKey()
  private let nonce = Randomness.bytes(Sealing.nonceByteCount)
  private let context = Randomness.bytes(50)

  @Test(arguments: [0, 1, 15, 16, 17, 4096, 70_000]) func `what one seals the other opens`(count: Int) throws {
    let plaintext = Randomness.bytes(count)
    let usual = try seal(plaintext, by: BufferCipher.self)
    let copied = try seal(plaintext, by: CopyingCipher.self)
    #expect(usual.ciphertext == copied.ciphertext)
    #expect(usual.tag == copied.tag)
    #expect(try open(copied, context, by: BufferCipher.self) == plaintext)
    #expect(try open(usual, context, by: CopyingCipher.self) == plaintext)
  }

  @Test(arguments: [0, 1, 4096]) func `both refuse what is not authentic, and leave zeros`(count: Int) throws {
    let sealed = try seal([UInt8](repeating: 0x5a, count: count), by: BufferCipher.self)
    var altered = sealed
    altered.tag[3] ^= 1
    let zeros = Refused(left: [UInt8](repeating: 0, count: count))
    for (sealed, context) in [(altered, context), (sealed, context.reversed())] {
      #expect(throws: zeros) { try open(sealed, context, by: BufferCipher.self) }
      #expect(throws: zeros) { try open(sealed, context, by: CopyingCipher.self) }
    }
  }

  /// With what was left in the buffer.
  private struct Refused: Error, Equatable { let left: [UInt8] }

  private func seal<Cipher: AuthenticatedCipher & ~Copyable>(
    _ plaintext: [UInt8], by cipher: Cipher.Type
  ) throws -> Sealed {
    var sealed = Sealed(ciphertext: plaintext)
    try plaintext.withUnsafeBytes { plaintext in
      try nonce.withUnsafeBytes { nonce in
        try context.withUnsafeBytes { context in
          try sealed.ciphertext.withUnsafeMutableBytes { ciphertext in
            try sealed.tag.withUnsafeMutableBytes { tag in
              try cipher.with(key) {
                try $0.seal(plaintext, nonce: nonce, authenticating: context, into: ciphertext, tag: tag)
              }
            }
          }
        }
      }
    }
    return sealed
  }

  private func open<Cipher: AuthenticatedCipher & ~Copyable>(
    _ sealed: Sealed, _ context: [UInt8], by cipher: Cipher.Type
  ) throws -> [UInt8] {
    var plaintext = [UInt8](repeating: 0xee, count: sealed.ciphertext.count)
    do {
      try sealed.ciphertext.withUnsafeBytes { ciphertext in
        try nonce.withUnsafeBytes { nonce in
          try sealed.tag.withUnsafeBytes { tag in
            try context.withUnsafeBytes { context in
              try plaintext.withUnsafeMutableBytes { plaintext in
                try cipher.with(key) {
                  try $0.open(ciphertext, nonce: nonce, tag: tag, authenticating: context, into: plaintext)
                }
              }
            }
          }
        }
      }
    } catch CryptoError.notAuthentic {
      throw Refused(left: plaintext)
    }
    return plaintext
  }
}
