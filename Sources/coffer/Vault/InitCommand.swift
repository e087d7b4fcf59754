internal import ArgumentParser
internal import CofferContainer
internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

struct InitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Makes a vault in an empty or new folder.",
    discussion: """
      Example:
        coffer init --vault ~/Documents.coffer

      The passcode cannot be recovered: whoever forgets it loses the files. The folder alone opens nothing either, the
      device's secret is in the key store.
      """)

  @OptionGroup var options: GlobalOptions

  @Flag(
    name: .customLong("no-recovery-key"),
    help: "Make no recovery key. This version makes none in any case, and says so.")
  var noRecoveryKey = false

  func run() throws {
    let path = try options.vaultPath
    try options.requireKeyStoreOutsideVault()
    let passcode = try TypedSecret.passcode.new(options.passcodeFile)
    let container = try Container.create(
      at: path, keyStore: options.keys, passcode: passcode, derivation: PasscodeCost.chosen(),
      sniffer: ContentTypeHelper())
    let id = container.id.description
    try container.close()
    if !noRecoveryKey && !options.json {
      Output.note("no recovery key was made: whoever forgets the passcode loses the files")
    }
    if options.json { try Output.json(["vaultID": id]) } else { Output.line(id) }
  }
}

/// How much work a passcode costs on this machine.
enum PasscodeCost {
  /// 128 MiB and about a quarter of a second on a machine of today (the parameters that OWASP recommends for scrypt), and
  /// less where that would take more than a second.
  static func chosen() throws -> PasscodeDerivation {
    let salt = Randomness.bytes(32)
    for exponent in [17, 16] {
      let trial = try PasscodeDerivation(costExponent: exponent, salt: salt)
      let start = ContinuousClock.now
      _ = try trial.key(for: SecretBytes(count: 8) { _ in })
      if ContinuousClock.now - start < .seconds(1) { return trial }
    }
    return try PasscodeDerivation(costExponent: 15, salt: salt)
  }
}
