import CofferCrypto
import CofferSystem
import Testing

@Suite struct RecoveryKeyTests {
  private func secret(_ text: String) -> SecretBytes {
    Array(text.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
  }

  private func text(_ key: RecoveryKey) -> String {
    key.text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
  }

  private func same(_ one: RecoveryKey, _ two: RecoveryKey) -> Bool {
    one.key("test", context: [1]).commitment == two.key("test", context: [1]).commitment
  }

  @Test func `a key is read as it was shown, however it is typed`() throws {
    for _ in 0..<200 {
      let key = RecoveryKey()
      let shown = text(key)
      #expect(shown.count == 44 && shown.split(separator: "-").count == 9)
      #expect(shown.split(separator: "-").allSatisfy { $0.count == 4 })
      for typed in [
        shown, shown.lowercased(), shown.replacing("-", with: ""), shown.replacing("-", with: " ") + "\n",
        shown.replacing("0", with: "O").replacing("1", with: "l"), " " + shown.replacing("1", with: "I"),
      ] {
        #expect(try same(RecoveryKey(text: secret(typed)), key), "\(typed)")
      }
      #expect(!same(RecoveryKey(), key))
    }
  }

  @Test func `a slip of the pen is told from another key`() throws {
    let shown = Array(text(RecoveryKey()))
    var missed = 0
    for place in shown.indices where shown[place] != "-" {
      for other in "0123456789ABCDEFGHJKMNPQRSTVWXYZ" where other != shown[place] {
        var typed = shown
        typed[place] = other
        do {
          _ = try RecoveryKey(text: secret(String(typed)))
          missed += 1
        } catch {
          #expect(error == .checksum)
        }
      }
    }
    // One in a million of all slips is not seen.
    #expect(missed <= 1)
    #expect(throws: RecoveryKey.Mistake.length(35)) { try RecoveryKey(text: secret(String(shown.dropLast()))) }
    #expect(throws: RecoveryKey.Mistake.length(37)) { try RecoveryKey(text: secret(String(shown) + "0")) }
    #expect(throws: RecoveryKey.Mistake.length(0)) { try RecoveryKey(text: secret("")) }
    for wrong in ["U", "u", "é", "!", "\u{0}"] {
      #expect(throws: RecoveryKey.Mistake.character) {
        try RecoveryKey(text: secret(String(shown.dropLast()) + wrong))
      }
    }
  }

  @Test func `bytes of any kind are refused or read`() {
    for length in 0..<60 {
      for _ in 0..<50 {
        _ = try? RecoveryKey(text: SecretBytes(count: length) { Randomness.fill($0) })
      }
    }
  }

  @Test func `it shows nothing of itself`() {
    let key = RecoveryKey()
    #expect("\(key)" == "<recovery key>" && Array(Mirror(reflecting: key).children).isEmpty)
  }
}
