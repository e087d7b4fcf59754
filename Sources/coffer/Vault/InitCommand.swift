internal import ArgumentParser
internal import CofferContainer
internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

struct InitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Makes a vault in an empty or new folder.",
    discussion: """
      Examples:
        coffer init --vault ~/Documents.coffer
        coffer init --vault ~/Documents.coffer --recovery-key-file /media/stick/recovery.txt

      The vault's folder alone opens nothing: a part of its key, the device's secret, is in the key store. The recovery
      key opens the vault without the passcode and without the key store; it is shown once. Whoever makes none and
      forgets the passcode loses the files.

      What a try of a passcode costs is chosen so that it takes about half a second here; coffer info shows it. After
      five wrong ones there are delays, from a minute up to an hour.
      """)

  @OptionGroup var options: GlobalOptions

  @Option(help: ArgumentHelp("Write the recovery key to this new file instead of showing it.", valueName: "file"))
  var recoveryKeyFile: String?

  @Flag(name: .customLong("no-recovery-key"), help: "Make no recovery key.")
  var noRecoveryKey = false

  @Option(
    help: ArgumentHelp(
      "Let a company open the vault, too: its public key, from coffer escrow keygen.", valueName: "file"))
  var escrowKey: String?

  @Flag(name: .customLong("wipe-after-10"), help: "Destroy the vault after ten wrong passcodes.")
  var wipeAfterTen = false

  func validate() throws {
    if noRecoveryKey, recoveryKeyFile != nil {
      throw ValidationError("Either --no-recovery-key or --recovery-key-file.")
    }
  }

  private struct Answer: Encodable {
    let vaultID: String
    let recoveryKey: String?
  }

  func run() throws {
    let path = try options.vaultPath
    try options.requireKeyStoreOutsideVault()
    if let recoveryKeyFile, try options.isInVault(recoveryKeyFile) {
      throw Failure.usage("the recovery key must be outside the vault's folder; choose another --recovery-key-file")
    }
    if let recoveryKeyFile { try RecoveryKeyPaper.requirePlace(recoveryKeyFile) }
    var keys = KeyOptions()
    keys.escrowKey = try escrowKey.map { try EscrowKeyFile.readPublic($0) }
    keys.wipesAfterTenFailures = wipeAfterTen
    // What cannot work is said before anyone is asked for a passcode.
    try Container.requireVacant(at: path)
    try options.keys.requirePrivate()
    let passcode = try TypedSecret.passcode.new(options.passcodeFile)
    let derivation = try PasscodeCost.chosen()
    // From here on there is something to be taken back.
    Interrupts.catchFromHere()
    let interrupts = Interrupts.present
    let paper = noRecoveryKey ? nil : try RecoveryKeyPaper(file: recoveryKeyFile)
    keys.recoveryKey = paper?.key
    let container: Container
    do {
      container = try Container.create(
        at: path, keyStore: options.keys, passcode: passcode, derivation: derivation, keys: keys,
        sniffer: ContentTypeHelper(), isCancelled: { interrupts.isRaised })
    } catch {
      // What fails behind the making leaves a vault, and nobody shall be without its key.
      if Container.statedID(at: path) == nil { paper?.discard() } else { try? paper?.show() }
      throw error
    }
    if let escrowKey = keys.escrowKey { EscrowNotice.show(escrowKey) }
    try show(container.id.description, paper)
    try container.close()
    // It came too late: the vault is there.
    try Interrupts.endIfRaised()
  }

  private func show(_ id: String, _ paper: RecoveryKeyPaper?) throws {
    if options.json { return try Output.json(Answer(vaultID: id, recoveryKey: paper?.answer)) }
    try paper?.show()
    if noRecoveryKey { Output.note("no recovery key was made: whoever forgets the passcode loses the files") }
    Output.line(id)
  }
}
