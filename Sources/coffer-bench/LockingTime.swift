internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem
internal import CofferVault
internal import Foundation

/// How long a lock without grace takes until the keys are gone while `--size` bytes of a file were written and not synced,
/// with as much plaintext in memory as there can be; and an unlock, beside deriving its key.
enum LockingTime {
  private static let step = 1 << 20

  static func measure(_ options: inout Options) throws {
    let rounds = try options.number("rounds", 5)
    let size = try options.number("size", 1 << 30) / step * step
    let place = try BenchVault(options)
    let vault = try place.create()
    let derivation = try PasscodeDerivation(
      costExponent: PasscodeDerivation.costExponents.lowerBound, salt: Randomness.bytes(32))
    let buffer = Buffer(step)
    for round in 0...rounds {
      let path = try VaultPath("dirty-\(round)")
      let file = try vault.createFile(at: path, permissions: 0o600, exclusive: true)
      for offset in stride(from: 0, to: size, by: step) { try file.write(buffer.readable, at: UInt64(offset)) }
      // Parts of blocks wait in memory as plaintext.
      for part in 0..<100 { try file.writePart(of: buffer, at: UInt64(part) * 64 << 10 + 5) }
      let locked = seconds { vault.lock(graceSeconds: 0) }
      let derived = try seconds { _ = try derivation.key(for: BenchVault.passcode) }
      let unlocked = try seconds { try vault.unlock(passcode: BenchVault.passcode) }
      try file.close()
      try vault.remove(path)
      try vault.commit()
      if round == 0 { continue }
      for (subject, time) in [("lock", locked), ("derivation", derived), ("unlock", unlocked)] {
        try Line(
          measurement: "locking", subject: subject, round: round, parameters: ["size": size], seconds: time, calls: 1
        ).print()
      }
    }
    try vault.close()
  }
}

extension OpenFile {
  fileprivate func writePart(of buffer: Buffer, at offset: UInt64) throws {
    try write(UnsafeRawBufferPointer(rebasing: buffer.readable[..<100]), at: offset)
  }
}
