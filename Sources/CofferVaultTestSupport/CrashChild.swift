internal import CofferKeys
internal import CofferSystem
internal import CofferVault

/// Works on a vault until it is killed, and says on standard output what it is about to make durable and what is.
public enum CrashChild {
  /// - Parameter arguments: the vault's folder, the key store's, a file to overwrite, and a seed.
  public static func run(_ arguments: [String]) throws {
    if arguments.first == "guess" { return try guess(Array(arguments.dropFirst())) }
    if arguments == ["moment"] {
      let moment = SystemTime().sinceBoot()
      return try say(moment.boot.hexadecimal, Int(moment.seconds))
    }
    guard arguments.count == 4, let seed = UInt64(arguments[3]) else { throw MalformedBytes() }
    let open = {
      try Vault.open(
        at: arguments[0], keyStore: FileKeyStore(path: arguments[1]), passcode: { TestVault.passcode },
        options: TestVault.options)
    }
    var run = try WorkloadRun(scratch: arguments[2], backup: arguments[2] + "-backup", open: open)
    var workload = VaultWorkload(seed: seed, from: try ExpectedVault(reading: run.vault), sizes: .large)
    try say("open", 0)
    while true {
      let (step, state) = try run.performChanges(of: &workload)
      try say("began", state)
      try run.perform(step)
      try say("durable", state)
    }
  }

  /// Tries passcodes that are all wrong until none is tried any more, and says of each that was.
  ///
  /// - Parameter arguments: the vault's folder, the key store's, and what the guesses begin with.
  private static func guess(_ arguments: [String]) throws {
    guard arguments.count == 3 else { throw MalformedBytes() }
    var number = 0
    while true {
      number += 1
      do {
        _ = try Vault.open(
          at: arguments[0], keyStore: FileKeyStore(path: arguments[1]),
          passcode: {
            Array("\(arguments[2]) \(number)".utf8).withUnsafeBytes { SecretBytes(copying: $0) }
          })
      } catch VaultError.wrongPasscode {
        try say("wrong", number)
      } catch VaultError.tooManyAttempts(let seconds) {
        return try say("refused", Int(seconds))
      }
    }
  }

  private static func say(_ word: String, _ state: Int) throws {
    try OwnedDescriptor.standardOutput.writeAll(Array("\(word) \(state)\n".utf8))
  }
}
