internal import ArgumentParser
internal import CofferContainer
internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

struct PasscodeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "passcode", abstract: "Changes the passcode, and what else opens the vault.",
    discussion: """
      Examples:
        coffer passcode
        coffer passcode --passcode-file old.txt --new-passcode-file new.txt

      Asks for the old passcode, for the new one, and for the new one again. From then on the old one opens nothing,
      neither the vault nor a copy that was made before; the recovery key still does. The new one does not open such a copy
      either: coffer backup --help says what does. A crash leaves one of the two.

      What a try costs is chosen anew for this machine.
      """)

  @OptionGroup var options: GlobalOptions

  @Option(help: ArgumentHelp("A file with the new passcode; - is standard input.", valueName: "file"))
  var newPasscodeFile: String?

  @OptionGroup var recovery: NewRecoveryKeyOptions

  @Option(
    help: ArgumentHelp(
      "Let a company open the vault, too: its public key, from coffer escrow keygen.", valueName: "file"))
  var escrowKey: String?

  @Flag(name: .customLong("wipe-after-10"), help: "Destroy the vault after ten wrong passcodes.")
  var wipeAfterTen = false

  @Flag(name: .customLong("no-wipe-after-10"), help: "Do not destroy the vault after wrong passcodes.")
  var noWipeAfterTen = false

  func validate() throws {
    if wipeAfterTen, noWipeAfterTen { throw ValidationError("Either --wipe-after-10 or --no-wipe-after-10.") }
  }

  func run() throws {
    var keys = KeyOptions()
    keys.escrowKey = try escrowKey.map { try EscrowKeyFile.readPublic(FileSystem().pathNamed($0)) }
    keys.wipesAfterTenFailures = wipeAfterTen ? true : noWipeAfterTen ? false : nil
    let paper = try recovery.paper(options)
    keys.recoveryKey = paper?.key
    do {
      try change(keys)
    } catch {
      paper?.discard(after: error)
      throw error
    }
    if let escrowKey = keys.escrowKey { EscrowNotice.show(escrowKey) }
    if options.json { return try Output.json(RecoveryKeyAnswer(changed: true, recoveryKey: paper?.answer)) }
    try paper?.show()
    Output.note("the passcode is changed")
  }

  private func change(_ keys: KeyOptions) throws {
    let old = { try TypedSecret.passcode.existing(options.passcodeFile, prompt: "Present passcode: ") }
    let new = {
      let new = try TypedSecret.newPasscode.new(newPasscodeFile)
      // The agent's client has ended then, and was told of nothing that is changed.
      guard !Interrupts.wasInterrupted else { throw Failure.interruptedQuestion }
      return new
    }
    let derivation = try PasscodeCost.chosen()
    if let container = Session.present.container {
      return try container.changePasscode(old: old, new: new, derivation: derivation, options: keys)
    }
    try Container.changePasscode(
      at: options.vaultPath, keyStore: options.keys, old: old, new: new, derivation: derivation, options: keys,
      sniffer: ContentTypeHelper(), onEscrowChange: { EscrowNotice.show($0) })
  }
}

/// A new recovery key in the place of an earlier one.
struct NewRecoveryKeyOptions: ParsableArguments {
  @Flag(help: "Make a new recovery key and show it once. An earlier one opens only copies from before.")
  var newRecoveryKey = false

  @Option(help: ArgumentHelp("Make a new recovery key and write it to this new file.", valueName: "file"))
  var newRecoveryKeyFile: String?

  func paper(_ options: GlobalOptions) throws -> RecoveryKeyPaper? {
    guard newRecoveryKey || newRecoveryKeyFile != nil else { return nil }
    if let newRecoveryKeyFile, try options.isInVault(newRecoveryKeyFile) {
      throw Failure.usage("the recovery key must be outside the vault's folder; choose another file")
    }
    return try RecoveryKeyPaper(file: newRecoveryKeyFile)
  }
}

struct RecoveryKeyAnswer: Encodable {
  var changed: Bool?
  var vaultID: String?
  let recoveryKey: String?
}
