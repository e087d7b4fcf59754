import CofferAPI
import CofferPolicy
import Testing

struct EnrollmentCodeTests {
  static func random(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255) } }

  @Test func `is read as it was written, in either case and with space around it`() throws {
    for _ in 0..<200 {
      let fingerprint = Self.random(32)
      let code = EnrollmentCode(secret: Self.random(20), fingerprint: fingerprint)
      #expect(code.text.count == 5 + 32 + 1 + 52)
      for text in [code.text, code.text.uppercased(), "  \(code.text)\r\n"] {
        let read = try #require(EnrollmentCode(text))
        #expect(read == code)
        #expect(read.fingerprint == fingerprint)
        #expect(EnrollmentCode.isSecret(read.secret))
      }
    }
  }

  @Test func `known bytes have a known text`() {
    let code = EnrollmentCode(secret: Array("foobarfoobarfoobar!!".utf8), fingerprint: [UInt8](repeating: 0, count: 32))
    #expect(code.text == "COF1-mzxw6ytbojtg633cmfzgm33pmjqxeijb-" + String(repeating: "a", count: 52))
  }

  @Test func `everything else is refused`() {
    let code = EnrollmentCode(secret: Self.random(20), fingerprint: [UInt8](repeating: 7, count: 32)).text
    let parts = code.split(separator: "-")
    let wrong = [
      "", "COF1", "COF1--", "COF2" + code.dropFirst(4), String(code.dropLast()), code + "a", code + "-", code + "=",
      "COF1-\(parts[2])-\(parts[1])", "COF1-\(parts[1])", "COF1-\(parts[1]) -\(parts[2])",
      "COF1-\(parts[1])1-\(parts[2])",
      "COF1-\(parts[1].dropLast())1-\(parts[2])", "COF1-\(parts[1])-\(parts[2].dropLast())b", code + code,
      code.replacing("-", with: "_"), String(repeating: " ", count: 300) + code,
    ]
    for text in wrong { #expect(EnrollmentCode(text) == nil, "\(text)") }
    #expect(!EnrollmentCode.isSecret(code))
    #expect(!EnrollmentCode.isSecret(String(repeating: "1", count: 32)))
  }

  @Test func `never shows itself by accident`() {
    let code = EnrollmentCode(secret: Self.random(20), fingerprint: Self.random(32))
    var dumped = ""
    dump(code, to: &dumped)
    for text in ["\(code)", String(reflecting: code), dumped] { #expect(!text.contains(code.secret)) }
  }
}
