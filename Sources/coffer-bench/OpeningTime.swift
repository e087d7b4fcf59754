internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem
internal import CofferVault
internal import Foundation

/// Opening the vault that ``SmallFiles`` left, beside deriving its passcode's key, which is most of it; and the first
/// look-up of a name, which verifies the buckets that it touches.
enum OpeningTime {
  static func measure(_ options: inout Options) throws {
    let rounds = try options.number("rounds", 9)
    let place = try BenchVault(options)
    let derivation = try PasscodeDerivation(costExponent: BenchVault.costExponent, salt: Randomness.bytes(32))
    let name = try VaultPath("folder-0/file-1")
    for round in 0...rounds {
      let derived = try seconds { _ = try derivation.key(for: BenchVault.passcode) }
      var vault: Vault?
      let opened = try seconds { vault = try place.open() }
      guard let vault else { continue }
      let found = try seconds { _ = try vault.attributes(at: name) }
      try vault.close()
      if round == 0 { continue }
      for (subject, time) in [("derivation", derived), ("opening", opened), ("first look-up", found)] {
        try Line(measurement: "open", subject: subject, round: round, seconds: time, calls: 1).print()
      }
    }
  }
}
