import CofferCrypto
import CofferSystem
import Testing

@Suite struct HybridEncryptionTests {
  @Test func `what is sealed to a key opens with it, for the same info and context only`() throws {
    let key = HybridKey()
    let secret = SecretKey()
    let box = try key.publicKey.seal(secret, info: [1], authenticating: [2])
    #expect(box.encapsulatedKey.count == HybridBox.encapsulatedKeyByteCount)
    #expect(box.ciphertext.count == HybridBox.ciphertextByteCount)
    #expect(try key.open(box, info: [1], authenticating: [2]).commitment == secret.commitment)
    #expect(try HybridKey(key.secretBytes).open(box, info: [1], authenticating: [2]).commitment == secret.commitment)
    #expect(throws: CryptoError.notAuthentic) { try key.open(box, info: [2], authenticating: [2]) }
    #expect(throws: CryptoError.notAuthentic) { try key.open(box, info: [1], authenticating: [1]) }
    #expect(throws: CryptoError.notAuthentic) { try HybridKey().open(box, info: [1], authenticating: [2]) }
    for index in 0..<(32 + 48) {
      var (encapsulated, ciphertext) = (box.encapsulatedKey, box.ciphertext)
      if index < 32 { encapsulated[index] ^= 1 } else { ciphertext[index - 32] ^= 1 }
      #expect(throws: CryptoError.notAuthentic) {
        try key.open(
          HybridBox(encapsulatedKey: encapsulated, ciphertext: ciphertext), info: [1], authenticating: [2])
      }
    }
    for box in [HybridBox(encapsulatedKey: [], ciphertext: []), HybridBox(encapsulatedKey: [1], ciphertext: [2])] {
      #expect(throws: CryptoError.notAuthentic) { try key.open(box, info: [1], authenticating: [2]) }
    }
    // To have looked at the key changed nothing in it.
    #expect(try key.open(box, info: [1], authenticating: [2]).commitment == secret.commitment)
    #expect(key.secretBytes.isEqual(to: key.secretBytes))
    #expect("\(key)" == "<hybrid key>" && Array(Mirror(reflecting: key).children).isEmpty)
  }

  @Test func `keys of another size, and those that make no secret, are refused`() throws {
    for count in [0, 31, 33] {
      #expect(throws: CryptoError.self) { try HybridPublicKey(bytes: [UInt8](repeating: 9, count: count)) }
      #expect(throws: CryptoError.self) { try HybridKey(SecretBytes(count: count) { _ in }) }
    }
    // RFC 7748, section 6.1: points of small order.
    for first: UInt8 in [0, 1] {
      #expect(throws: CryptoError.self) {
        let weak = try HybridPublicKey(bytes: [first] + [UInt8](repeating: 0, count: 31))
        return try weak.seal(SecretKey(), info: [], authenticating: [])
      }
    }
  }
}
