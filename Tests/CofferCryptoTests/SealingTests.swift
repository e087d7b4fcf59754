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
        #expect(opened.allSatisfy { $0 == 0 }, "nothing is left of what is not authentic")
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

  /// A run of `count` blocks of `byteCount` bytes, sealed from block 7 on.
  private func run(_ sealer: BlockSealer, _ count: Int, of byteCount: Int, _ plaintext: [UInt8]) throws -> (
    ciphertext: [UInt8], seals: [BlockSeal]
  ) {
    var ciphertext = plaintext
    let seals = try ciphertext.withUnsafeMutableBytes { bytes in
      try sealer.seal(count, from: 7) { position in
        // In place.
        let range = (position * byteCount)..<((position + 1) * byteCount)
        let block = UnsafeMutableRawBufferPointer(rebasing: bytes[range])
        return (UnsafeRawBufferPointer(block), block)
      }
    }
    return (ciphertext, seals)
  }

  /// Opens it in place.
  private func open(
    _ sealer: BlockSealer, _ bytes: inout [UInt8], of byteCount: Int, _ seals: [BlockSeal], from first: UInt64 = 7
  ) throws -> Int {
    try bytes.withUnsafeMutableBytes { bytes in
      try sealer.open(seals.count, from: first) { position in
        let range = (position * byteCount)..<((position + 1) * byteCount)
        let block = UnsafeMutableRawBufferPointer(rebasing: bytes[range])
        return (UnsafeRawBufferPointer(block), seals[position], block)
      }
    }
  }

  @Test(arguments: [1, 16, 4096, 16385], [1, 2, 64])
  func `a run of blocks opens up to the first that is not authentic`(byteCount: Int, count: Int) throws {
    let sealer = BlockSealer(fileKey: SecretKey(), page: 0, context: [7])
    let plaintext = Randomness.bytes(count * byteCount)
    let (ciphertext, seals) = try run(sealer, count, of: byteCount, plaintext)
    var opened = ciphertext
    #expect(try open(sealer, &opened, of: byteCount, seals) == count)
    #expect(opened == plaintext)
    for (position, seal) in seals.enumerated() {
      let range = (position * byteCount)..<((position + 1) * byteCount)
      var single = [UInt8](repeating: 0, count: byteCount)
      try ciphertext[range].withUnsafeBytes { source in
        try single.withUnsafeMutableBytes { try sealer.open(source, block: 7 + UInt64(position), seal: seal, into: $0) }
      }
      #expect(single == Array(plaintext[range]))
    }
    for bad in Set([0, count / 2, count - 1]) {
      var changed = ciphertext
      changed[bad * byteCount + byteCount / 2] ^= 0x40
      #expect(try open(sealer, &changed, of: byteCount, seals) == bad)
      #expect(Array(changed[..<(bad * byteCount)]) == Array(plaintext[..<(bad * byteCount)]))
      #expect(changed[(bad * byteCount)..<((bad + 1) * byteCount)].allSatisfy { $0 == 0 })
    }
    var moved = ciphertext
    #expect(try open(sealer, &moved, of: byteCount, seals, from: 8) == 0)
  }

  @Test func `a run of no blocks is one`() throws {
    let sealer = BlockSealer(fileKey: SecretKey(), page: 0, context: [])
    var nothing: [UInt8] = []
    #expect(try run(sealer, 0, of: 1, []).seals == [])
    #expect(try open(sealer, &nothing, of: 1, []) == 0)
  }

  @Test func `nonces are not used twice`() throws {
    let sealer = BlockSealer(fileKey: SecretKey(), page: 0, context: [])
    let seals = try (0..<100).flatMap { _ in try run(sealer, 10, of: 3, [UInt8](repeating: 1, count: 30)).seals }
    #expect(Set(seals.map { Array($0.bytes.prefix(Sealing.nonceByteCount)) }).count == seals.count)
  }

  @Test func `what is put before a sealed value is not part of it`() throws {
    let key = SecretKey()
    let sealed = try Sealing.seal([1, 2, 3], key: key, authenticating: [4], after: [5, 6])
    #expect(Array(sealed.prefix(2)) == [5, 6])
    #expect(try Sealing.open(Array(sealed.dropFirst(2)), key: key, authenticating: [4]) == [1, 2, 3])
  }
}
