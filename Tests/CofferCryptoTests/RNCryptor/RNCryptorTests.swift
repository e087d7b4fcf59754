import CofferSystem
import CofferTestSupport
import Testing

@testable import CofferCrypto

/// Only what was sealed opens, with what it was sealed with, however it is cut into portions.
@Suite struct RNCryptorTests {
  static let password = RNCryptorBytes.password("correct horse")

  static func keys(seed: UInt64 = 1) throws -> RNCryptorSecret {
    var generator = SeededGenerator(seed: seed)
    return try RNCryptorBytes.keys(generator.bytes(64))
  }

  @Test func `every size comes back, in portions of any size`() throws {
    let keys = try Self.keys()
    for size in Array(0...49) + [65_535, 65_536, 65_537, 3 << 20, (3 << 20) + 1] {
      var generator = SeededGenerator(seed: UInt64(size))
      let plaintext = generator.bytes(size)
      for largest in size < 50 ? [1, 2, 3, 4, 5] : [700, 5000] {
        func blocks() -> Int { Int.random(in: 1...largest, using: &generator) }
        let data = try RNCryptorBytes.sealed(plaintext, keys, portion: blocks)
        #expect(data.count == 18 + (size / 16 + 1) * 16 + 32)
        #expect(try RNCryptorBytes.opened(data, keys, portion: blocks) == plaintext, "\(size) in \(largest)")
      }
    }
  }

  @Test(arguments: [0, 1, 15, 16, 17, 100_000]) func `a password does as well`(size: Int) throws {
    var generator = SeededGenerator(seed: UInt64(size))
    let plaintext = generator.bytes(size)
    let data = try RNCryptorBytes.sealed(plaintext, Self.password)
    #expect(data.count == 34 + (size / 16 + 1) * 16 + 32)
    #expect(data.prefix(2) == [3, 1])
    #expect(try RNCryptorBytes.opened(data, Self.password) == plaintext)
    #expect(throws: RNCryptorError.notAuthentic) {
      try RNCryptorBytes.opened(data, RNCryptorBytes.password("correct horse "))
    }
    #expect(try RNCryptorBytes.sealed(plaintext, Self.password) != data)
  }

  @Test(arguments: [0, 15, 16, 100], [1, 2, 5]) func `nothing that was changed opens`(size: Int, blocks: Int) throws {
    let keys = try Self.keys()
    var generator = SeededGenerator(seed: UInt64(size))
    let data = try RNCryptorBytes.sealed(generator.bytes(size), keys)
    for index in data.indices {
      for bit in 0..<8 {
        var changed = data
        changed[index] ^= 1 << bit
        refuse(changed, keys, blocks, "byte \(index), bit \(bit)")
      }
    }
    for count in 0..<data.count { refuse(Array(data.prefix(count)), keys, blocks, "cut to \(count)") }
    for count in 1...50 {
      refuse(data + generator.bytes(count), keys, blocks, "\(count) bytes more")
      refuse(data + data.suffix(count), keys, blocks, "\(count) bytes again")
    }
    // Blocks that are left out or come twice.
    for block in 0...(size / 16) {
      let range = (18 + 16 * block)..<(34 + 16 * block)
      refuse(Array(data[..<range.lowerBound] + data[range.upperBound...]), keys, blocks, "without block \(block)")
      refuse(Array(data[..<range.upperBound] + data[range.lowerBound...]), keys, blocks, "block \(block) twice")
    }
  }

  @Test func `nothing that was changed opens with a password`() throws {
    let data = try RNCryptorBytes.sealed([1, 2, 3], Self.password)
    for index in data.indices {
      var changed = data
      changed[index] ^= 0x10
      refuse(changed, Self.password, 2, "byte \(index)")
    }
    for count in 0..<data.count { refuse(Array(data.prefix(count)), Self.password, 2, "cut to \(count)") }
  }

  /// Throws, and the last block was not lent.
  private func refuse(
    _ data: [UInt8], _ secret: RNCryptorSecret, _ blocks: Int, _ what: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    var lent = 0
    let portion = { blocks }
    #expect(throws: RNCryptorError.self, "\(what)", sourceLocation: sourceLocation) {
      try RNCryptorBytes.open(data, secret, portion: portion) { lent += $0.count }
    }
    #expect(lent == 0 || lent <= data.count - 18 - 48, "\(what)", sourceLocation: sourceLocation)
  }

  @Test func `other versions and other formats are refused by name`() throws {
    let data = try RNCryptorBytes.sealed([1, 2, 3], Self.keys())
    for version in [0, 1, 4] as [UInt8] {
      for bytes in [[version], [version] + data.dropFirst()] {
        #expect(throws: RNCryptorError.unsupportedVersion(version)) {
          try RNCryptorBytes.opened(bytes, Self.password)
        }
      }
    }
    for version in 5...255 as ClosedRange<UInt8> {
      #expect(throws: RNCryptorError.notRNCryptor) { try RNCryptorBytes.opened([version] + [1, 2, 3], Self.password) }
    }
    for options in 2...255 as ClosedRange<UInt8> {
      #expect(throws: RNCryptorError.notRNCryptor) { try RNCryptorBytes.opened([3, options] + data, Self.password) }
    }
    for data in [[], [3], [3, 0], [2, 1]] as [[UInt8]] {
      #expect(throws: RNCryptorError.truncated) { try RNCryptorBytes.opened(data, Self.password) }
    }
    #expect("\(RNCryptorError.unsupportedVersion(1))".contains("version 1 is not read"))
    #expect("\(RNCryptorError.unsupportedVersion(4))".contains("version 4 is not read"))
  }

  @Test func `each form wants its own secret`() throws {
    let (withPassword, withKeys) = (
      try RNCryptorBytes.sealed([1], Self.password), try RNCryptorBytes.sealed([1], Self.keys())
    )
    #expect(throws: RNCryptorError.needsPassword) { try RNCryptorBytes.opened(withPassword, Self.keys()) }
    #expect(throws: RNCryptorError.needsKeys) { try RNCryptorBytes.opened(withKeys, Self.password) }
    #expect(throws: RNCryptorError.notAuthentic) { try RNCryptorBytes.opened(withKeys, Self.keys(seed: 2)) }
    let empty = RNCryptorBytes.password("")
    #expect(throws: RNCryptorError.emptyPassword) { try RNCryptorBytes.opened(withPassword, empty) }
    #expect(throws: RNCryptorError.emptyPassword) { try RNCryptorBytes.sealed([1], empty) }
  }

  @Test func `a key file is 64 bytes or 128 digits`() throws {
    var generator = SeededGenerator(seed: 5)
    let bytes = generator.bytes(64)
    let data = try RNCryptorBytes.sealed([1, 2], RNCryptorBytes.keys(bytes))
    let digits = bytes.hexadecimal
    for text in [digits, digits.uppercased(), digits + "\n", digits + "\r\n"] {
      #expect(try RNCryptorBytes.opened(data, RNCryptorBytes.keys(Array(text.utf8))) == [1, 2])
    }
    for file in [
      [], Array(bytes.dropLast()), bytes + [0], Array(digits.utf8.dropLast()), Array((digits + "\n\n").utf8),
      Array((" " + digits).utf8), Array((digits.dropLast() + "g").utf8), Array((digits + "00").utf8),
    ] as [[UInt8]] {
      #expect(throws: RNCryptorError.malformedKeys) { try RNCryptorBytes.keys(file) }
    }
    // The halves are not the same key.
    #expect(throws: RNCryptorError.notAuthentic) {
      try RNCryptorBytes.opened(data, RNCryptorBytes.keys(Array(bytes[32...] + bytes[..<32])))
    }
  }

  @Test func `padding that the format does not want is named once the code fits`() throws {
    var generator = SeededGenerator(seed: 9)
    let bytes = generator.bytes(64)
    let data = try RNCryptorBytes.sealed([1, 2], RNCryptorBytes.keys(bytes))
    // Another key for the cipher beside the right one for the code makes noise of the last block.
    var refusals = 0
    for seed in 0..<40 as Range<UInt64> {
      var other = SeededGenerator(seed: seed)
      let keys = try RNCryptorBytes.keys(other.bytes(32) + bytes[32...])
      do { _ = try RNCryptorBytes.opened(data, keys) } catch RNCryptorError.malformedPadding { refusals += 1 }
    }
    #expect(refusals >= 35)
  }

  @Test func `a failure stays one`() throws {
    let keys = try Self.keys()
    var data = try RNCryptorBytes.sealed([1, 2, 3], keys)
    data[20] ^= 1
    let opener = try RNCryptorOpener(secret: keys)
    var rest = data[...]
    var buffer = [UInt8](repeating: 0, count: 64)
    for _ in 0..<3 {
      #expect(throws: RNCryptorError.notAuthentic) {
        try buffer.withUnsafeMutableBytes { bytes in
          try opener.next(into: bytes) { part in
            let count = min(part.count, rest.count)
            part.copyBytes(from: rest.prefix(count))
            rest = rest.dropFirst(count)
            return count
          }
        }
      }
    }
  }
}
