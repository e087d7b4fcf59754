import CofferCrypto
import CofferSystem
import Testing

@Suite struct OneTimeCodeTests {
  static func code(_ text: String = "12345678901234567890") throws -> OneTimeCode {
    try OneTimeCode(secret: Array(text.utf8).withUnsafeBytes { SecretBytes(copying: $0) })
  }

  /// RFC 6238, appendix B, the last six of its eight digits.
  @Test(arguments: [
    (59, "287082"), (1_111_111_109, "081804"), (1_111_111_111, "050471"), (1_234_567_890, "005924"),
    (2_000_000_000, "279037"), (20_000_000_000, "353130"),
  ])
  func `codes are those of the RFC`(time: Int64, code: String) throws {
    #expect(try Self.code().code(step: OneTimeCode.step(at: time)) == code)
  }

  @Test func `a code is accepted a step around its time, and none that is not after the last`() throws {
    let code = try Self.code()
    let now: Int64 = 1_234_567_890
    let step = OneTimeCode.step(at: now)
    for distance: Int64 in -3...3 {
      let text = code.code(step: step + distance)
      let accepted = code.acceptedStep(text, at: now, after: 0)
      #expect(accepted == ((-1...1).contains(distance) ? step + distance : nil))
      #expect(code.acceptedStep(text, at: now, after: step + distance) == nil)
    }
    for text in ["", "5924", "0059240", "００５９２４", "abcdef"] {
      #expect(code.acceptedStep(text, at: now, after: 0) == nil)
    }
    #expect(code.acceptedStep(code.code(step: 0), at: -1, after: -1) == 0)
  }

  @Test func `a secret of another size is refused`() {
    for count in [0, 15, 65] {
      #expect(throws: CryptoError.self) { try Self.code(String(repeating: "x", count: count)) }
    }
  }
}
