import CofferCrypto
import CofferSystem
import Testing

@Suite struct SealingTests {
  @Test(arguments: [0, 1, 15, 16, 17, 1000]) func `only what was sealed opens, and only there`(count: Int) throws {
    let key = SecretKey()
    let plaintext = Randomness.bytes(count)
    let sealed = try Sealing.seal(plaintext, key: key, authenticating: [1, 2])
    #expect(sealed.count == count + Sealing.overhead)
    #expect(try Sealing.open(sealed, key: key, authenticating: [1, 2]) == plaintext)
    for index in sealed.indices {
      var changed = sealed
      changed[index] ^= 0x80
      #expect(throws: CryptoError.notAuthentic) { try Sealing.open(changed, key: key, authenticating: [1, 2]) }
    }
    for length in 0..<sealed.count {
      #expect(throws: CryptoError.notAuthentic) {
        try Sealing.open(Array(sealed.prefix(length)), key: key, authenticating: [1, 2])
      }
    }
    #expect(throws: CryptoError.notAuthentic) { try Sealing.open(sealed, key: SecretKey(), authenticating: [1, 2]) }
    #expect(throws: CryptoError.notAuthentic) { try Sealing.open(sealed, key: key, authenticating: [1]) }
    #expect(try Sealing.seal(plaintext, key: key, authenticating: [1, 2]) != sealed)
  }

  @Test func `a block opens only at its own place in its own page and file`() throws {
    let key = SecretKey()
    let sealer = BlockSealer(fileKey: key, page: 3, context: [7])
    let plaintext = Randomness.bytes(4096)
    var ciphertext = [UInt8](repeating: 0, count: 4096)
    let seal = try plaintext.withUnsafeBytes { source in
      try ciphertext.withUnsafeMutableBytes { try sealer.seal(source, block: 200, into: $0) }
    }
    func open(_ sealer: BlockSealer, _ block: UInt64, _ seal: BlockSeal, _ ciphertext: [UInt8]) throws -> [UInt8] {
      var opened = [UInt8](repeating: 0xee, count: ciphertext.count)
      do {
        try ciphertext.withUnsafeBytes { source in
          try opened.withUnsafeMutableBytes { try sealer.open(source, block: block, seal: seal, into: $0) }
        }
      } catch {
        #expect(opened.allSatisfy { $0 == 0xee }, "nothing is written before it is verified")
        throw error
      }
      return opened
    }
    #expect(try open(sealer, 200, seal, ciphertext) == plaintext)
    #expect(BlockSeal(bytes: seal.bytes) == seal)
    #expect(throws: CryptoError.notAuthentic) { try open(sealer, 201, seal, ciphertext) }
    for other in [
      BlockSealer(fileKey: key, page: 4, context: [7]), BlockSealer(fileKey: key, page: 3, context: [8]),
      BlockSealer(fileKey: SecretKey(), page: 3, context: [7]),
    ] {
      #expect(throws: CryptoError.notAuthentic) { try open(other, 200, seal, ciphertext) }
    }
    for index in 0..<BlockSeal.byteCount {
      var bytes = seal.bytes
      bytes[index] ^= 1
      let changed = try #require(BlockSeal(bytes: bytes))
      #expect(throws: CryptoError.notAuthentic) { try open(sealer, 200, changed, ciphertext) }
    }
    var zeroed = ciphertext
    zeroed.replaceSubrange(0..<16, with: repeatElement(0, count: 16))
    #expect(throws: CryptoError.notAuthentic) { try open(sealer, 200, seal, zeroed) }
  }

  @Test(arguments: [16, 4096, 16384, 16385, 65536]) func `a lent block is the block that a buffer gets`(count: Int)
    throws
  {
    let sealer = BlockSealer(fileKey: SecretKey(), page: 0, context: [7])
    let plaintext = Randomness.bytes(count)
    let sealed = try plaintext.withUnsafeBytes { try sealer.seal($0, block: 1) }
    let ciphertext = sealed.withCiphertext { Array($0) }
    #expect(ciphertext.count == count)
    var opened = [UInt8](repeating: 0, count: count)
    try ciphertext.withUnsafeBytes { source in
      try opened.withUnsafeMutableBytes { try sealer.open(source, block: 1, seal: sealed.seal, into: $0) }
    }
    #expect(opened == plaintext)
    let lent = try ciphertext.withUnsafeBytes { try sealer.open($0, block: 1, seal: sealed.seal) }
    #expect(lent.withPlaintext { Array($0) } == plaintext)
    var frame = [UInt8](repeating: 0, count: BlockSealer.frameByteCount + count)
    frame.replaceSubrange(BlockSealer.frameStart..<(BlockSealer.frameStart + count), with: ciphertext)
    let framed = try frame.withUnsafeMutableBytes { try sealer.open(framed: $0, block: 1, seal: sealed.seal) }
    #expect(framed.withPlaintext { Array($0) } == plaintext)
    #expect(throws: CryptoError.notAuthentic) {
      try ciphertext.withUnsafeBytes { _ = try sealer.open($0, block: 2, seal: sealed.seal) }
    }
    #expect(throws: CryptoError.notAuthentic) {
      try frame.withUnsafeMutableBytes { _ = try sealer.open(framed: $0, block: 2, seal: sealed.seal) }
    }
    frame[BlockSealer.frameStart] ^= 1
    #expect(throws: CryptoError.notAuthentic) {
      try frame.withUnsafeMutableBytes { _ = try sealer.open(framed: $0, block: 1, seal: sealed.seal) }
    }
  }

  @Test func `nonces are not used twice`() throws {
    let sealer = BlockSealer(fileKey: SecretKey(), page: 0, context: [])
    let seals = try (0..<1000).map { _ in try [1, 2, 3].withUnsafeBytes { try sealer.seal($0, block: 0).seal } }
    #expect(Set(seals.map { Array($0.bytes.prefix(Sealing.nonceByteCount)) }).count == seals.count)
  }

  @Test func `what is put before a sealed value is not part of it`() throws {
    let key = SecretKey()
    let sealed = try Sealing.seal([1, 2, 3], key: key, authenticating: [4], after: [5, 6])
    #expect(Array(sealed.prefix(2)) == [5, 6])
    #expect(try Sealing.open(Array(sealed.dropFirst(2)), key: key, authenticating: [4]) == [1, 2, 3])
  }
}
