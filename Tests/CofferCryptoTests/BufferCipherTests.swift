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
    let direct = try sealDirectly(plaintext)
    let copied = try sealByCopying(plaintext)
    #expect(direct.ciphertext == copied.ciphertext)
    #expect(direct.tag == copied.tag)
    #expect(try openDirectly(copied, context) == plaintext)
    #expect(try openByCopying(direct, context) == plaintext)
  }

  @Test(arguments: [0, 1, 4096]) func `both refuse what is not authentic, and leave zeros`(count: Int) throws {
    let sealed = try sealDirectly([UInt8](repeating: 0x5a, count: count))
    var altered = sealed
    altered.tag[3] ^= 1
    for (sealed, context) in [(altered, context), (sealed, context.reversed())] {
      #expect(throws: Refused(left: [UInt8](repeating: 0, count: count))) { try openDirectly(sealed, context) }
      #expect(throws: Refused(left: [UInt8](repeating: 0, count: count))) { try openByCopying(sealed, context) }
    }
  }

  /// With what was left in the buffer.
  private struct Refused: Error, Equatable { let left: [UInt8] }

  private func sealDirectly(_ plaintext: [UInt8]) throws -> Sealed {
    var sealed = Sealed(ciphertext: plaintext)
    try with(plaintext, &sealed) { plaintext, nonce, context, ciphertext, tag in
      try BufferCipher.with(key) {
        try $0.seal(plaintext, nonce: nonce, authenticating: context, into: ciphertext, tag: tag)
      }
    }
    return sealed
  }

  private func sealByCopying(_ plaintext: [UInt8]) throws -> Sealed {
    var sealed = Sealed(ciphertext: plaintext)
    try with(plaintext, &sealed) { plaintext, nonce, context, ciphertext, tag in
      try CopyingCipher.with(key) {
        try $0.seal(plaintext, nonce: nonce, authenticating: context, into: ciphertext, tag: tag)
      }
    }
    return sealed
  }

  private func with(
    _ plaintext: [UInt8], _ sealed: inout Sealed,
    _ body: (
      UnsafeRawBufferPointer, UnsafeRawBufferPointer, UnsafeRawBufferPointer, UnsafeMutableRawBufferPointer,
      UnsafeMutableRawBufferPointer
    ) throws -> Void
  ) throws {
    try plaintext.withUnsafeBytes { plaintext in
      try nonce.withUnsafeBytes { nonce in
        try context.withUnsafeBytes { context in
          try sealed.ciphertext.withUnsafeMutableBytes { ciphertext in
            try sealed.tag.withUnsafeMutableBytes { try body(plaintext, nonce, context, ciphertext, $0) }
          }
        }
      }
    }
  }

  private func openDirectly(_ sealed: Sealed, _ context: [UInt8]) throws -> [UInt8] {
    try opened(sealed) { ciphertext, nonce, tag, plaintext in
      try context.withUnsafeBytes { context in
        try BufferCipher.with(key) {
          try $0.open(ciphertext, nonce: nonce, tag: tag, authenticating: context, into: plaintext)
        }
      }
    }
  }

  private func openByCopying(_ sealed: Sealed, _ context: [UInt8]) throws -> [UInt8] {
    try opened(sealed) { ciphertext, nonce, tag, plaintext in
      try context.withUnsafeBytes { context in
        try CopyingCipher.with(key) {
          try $0.open(ciphertext, nonce: nonce, tag: tag, authenticating: context, into: plaintext)
        }
      }
    }
  }

  private func opened(
    _ sealed: Sealed,
    _ body: (
      UnsafeRawBufferPointer, UnsafeRawBufferPointer, UnsafeRawBufferPointer, UnsafeMutableRawBufferPointer
    ) throws -> Void
  ) throws -> [UInt8] {
    var plaintext = [UInt8](repeating: 0xee, count: sealed.ciphertext.count)
    do {
      try sealed.ciphertext.withUnsafeBytes { ciphertext in
        try nonce.withUnsafeBytes { nonce in
          try sealed.tag.withUnsafeBytes { tag in
            try plaintext.withUnsafeMutableBytes { try body(ciphertext, nonce, tag, $0) }
          }
        }
      }
    } catch CryptoError.notAuthentic {
      throw Refused(left: plaintext)
    }
    return plaintext
  }
}
