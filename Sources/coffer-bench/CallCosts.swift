internal import CofferCrypto
internal import CofferSystem
internal import Foundation

/// What one call of each small operation costs. A million files are several million of these.
enum CallCosts {
  static func measure(_ options: inout Options) throws {
    let rounds = try options.number("rounds", 9)
    let calls = try options.number("calls", 20_000)
    let cases = try operations()
    for round in 0..<rounds {
      for (name, body) in cases.rotated(by: round) {
        let time = try seconds { for _ in 0..<calls { try body() } }
        try Line(measurement: "call", subject: name, round: round, seconds: time, calls: calls).print()
      }
    }
  }

  private static func operations() throws -> [(String, () throws -> Void)] {
    let key = SecretKey()
    let other = SecretKey()
    let hash = KeyedHash(key: key)
    let context = Randomness.bytes(50)
    let message = Randomness.bytes(40)
    let record = Randomness.bytes(300)
    let sealed = try Sealing.seal(record, key: key, authenticating: context)
    let wrapped = try other.wrapped(under: key)
    return [
      ("MessageAuthentication.code", { _ = MessageAuthentication.code(for: message, key: key) }),
      ("KeyedHash.code", { _ = hash.code(for: message) }),
      ("SecretKey.derived", { _ = key.derived("records", context: context) }),
      ("SecretKey.commitment", { _ = key.commitment }),
      ("SecretKey()", { _ = SecretKey() }),
      ("SecretKey.wrapped", { _ = try other.wrapped(under: key) }),
      ("SecretKey(unwrapping:)", { _ = try SecretKey(unwrapping: wrapped, under: key) }),
      ("Sealing.seal, 300 bytes", { _ = try Sealing.seal(record, key: key, authenticating: context) }),
      ("Sealing.open, 300 bytes", { _ = try Sealing.open(sealed, key: key, authenticating: context) }),
      ("Digest.sha256, 300 bytes", { _ = Digest.sha256(record) }),
      ("Randomness.bytes(12)", { _ = Randomness.bytes(12) }),
      ("Randomness.bytes(32)", { _ = Randomness.bytes(32) }),
      ("BlockSealer()", { _ = BlockSealer(fileKey: key, page: 7, context: context) }),
    ]
  }
}
