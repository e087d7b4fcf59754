import CofferSystem
import Testing

@testable import CofferCrypto

/// The two ways to HMAC-SHA256 are one construction.
@Suite struct BufferCodeTests {
  private func code<Code: AuthenticationCode>(_ message: [UInt8], _ key: [UInt8], by code: Code.Type) -> [UInt8] {
    var written = [UInt8](repeating: 0, count: Digest.byteCount)
    written.withUnsafeMutableBytes { written in
      message.withUnsafeBytes { message in key.withUnsafeBytes { Code.write(written, for: message, key: $0) } }
    }
    // What is prepared for many messages, and used for several, gives the same.
    let prepared = key.withUnsafeBytes { Code(key: $0) }
    for _ in 0..<2 {
      var other = [UInt8](repeating: 0, count: Digest.byteCount)
      other.withUnsafeMutableBytes { other in message.withUnsafeBytes { prepared.write(other, for: $0) } }
      #expect(other == written)
    }
    return written
  }

  /// Around the lengths where SHA-256 begins a block and HMAC hashes its key.
  @Test(arguments: [0, 1, 31, 32, 33, 63, 64, 65, 131]) func `both give the same`(keyByteCount: Int) {
    let key = Randomness.bytes(keyByteCount)
    for byteCount in [0, 1, 31, 32, 54, 55, 56, 57, 63, 64, 65, 118, 119, 120, 121, 4096, 70_000] {
      let message = Randomness.bytes(byteCount)
      #expect(code(message, key, by: BufferCode.self) == code(message, key, by: CopyingCode.self))
    }
  }

  /// RFC 4231, cases 1, 2 and 6.
  @Test func `both give the bytes of the standard`() {
    let cases: [([UInt8], String, String)] = [
      (
        .init(repeating: 0x0b, count: 20), "Hi There",
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
      ),
      (
        Array("Jefe".utf8), "what do ya want for nothing?",
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
      ),
      (
        .init(repeating: 0xaa, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
      ),
    ]
    for (key, message, expected) in cases {
      #expect(code(Array(message.utf8), key, by: BufferCode.self).hexadecimal == expected)
      #expect(code(Array(message.utf8), key, by: CopyingCode.self).hexadecimal == expected)
    }
  }

  @Test func `both take nothing at all for an empty message and an empty key`() {
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    func code<Code: AuthenticationCode>(by _: Code.Type) -> [[UInt8]] {
      var written = [[UInt8]](repeating: .init(repeating: 0, count: Digest.byteCount), count: 2)
      written[0].withUnsafeMutableBytes { Code.write($0, for: none, key: none) }
      written[1].withUnsafeMutableBytes { Code(key: none).write($0, for: none) }
      return written
    }
    let expected = self.code([], [], by: CopyingCode.self)
    #expect(code(by: BufferCode.self) == [expected, expected])
    #expect(code(by: CopyingCode.self) == [expected, expected])
  }

  /// As RFC 5869 has it, by the other way to the code.
  @Test(arguments: [0, 1, 200, 255], [0, 1, 767, 3000]) func `derivation keeps to the standard at every length`(
    labelByteCount: Int, contextByteCount: Int
  ) throws {
    let key = SecretKey()
    let (label, context) = (String(repeating: "l", count: labelByteCount), Randomness.bytes(contextByteCount))
    let first = code(key.secretBytes.withUnsafeBytes { Array($0) }, Array("coffer".utf8), by: CopyingCode.self)
    let info = [UInt8(labelByteCount)] + Array(label.utf8) + context + [1]
    let expected = code(info, first, by: CopyingCode.self)
    #expect(key.derived(label, context: context).secretBytes.withUnsafeBytes { Array($0) } == expected)
  }

  @Test func `one that is prepared serves several threads at once`() async {
    let key = Randomness.bytes(32)
    let hash = KeyedHash(key: key.withUnsafeBytes { try! SecretKey(SecretBytes(copying: $0)) })
    await withTaskGroup { group in
      for start in 0..<8 {
        group.addTask {
          for number in start..<(start + 200) {
            let message = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: number)
            #expect(hash.code(for: message) == code(message, key, by: CopyingCode.self))
          }
        }
      }
    }
  }
}
