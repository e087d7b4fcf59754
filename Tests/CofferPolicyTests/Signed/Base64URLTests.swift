import CofferPolicy
import Foundation
import Testing

struct Base64URLTests {
  @Test(arguments: 0...70)
  func `is what Foundation writes, and reads back`(count: Int) {
    let bytes = (0..<count).map { _ in UInt8.random(in: 0...255) }
    let expected = Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
      .replacing("=", with: "")
    #expect(Base64URL.encode(bytes) == expected)
    #expect(Base64URL.decode(expected) == bytes)
  }

  @Test(arguments: ["A", "AAAAA", "AA==", "AAA=", "A A", "AA\n", "AA+A", "AA/A", "AB", "AAB", "_x", "é"])
  func `refuses all but one text`(text: String) {
    #expect(Base64URL.decode(text) == nil)
  }
}
