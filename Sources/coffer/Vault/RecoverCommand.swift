internal import ArgumentParser
internal import CofferContainer
internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Foundation

struct RecoverCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recover", abstract: "Opens the vault with the recovery key, and sets a new passcode.",
    discussion: """
      Examples:
        coffer recover
        coffer recover --recovery-key-file recovery.txt --new-passcode-file new.txt
        coffer recover --accept-restored --vault ~/Files.coffer
        coffer recover --cleared

      Asks for the recovery key and for a new passcode. Where the key store knows the vault, the former passcode opens
      nothing any more. On another device, or where the key store is lost, the vault is taken on as one that was
      restored; where it was before, its files can then only be read.

      A backup that was put in the vault's place, and is from before the passcode was changed, is opened so, with
      --accept-restored: it is the vault from then on, and what was changed since the backup is given up.

      An agent that holds the vault is ended.

      The recovery key stays valid, unless a new one is made. With --escrow-key-file a company uses its private key in
      place of a recovery key. With --cleared it is the code that the company told, within an hour of its order, once; on a
      device that no order reaches, --clearing-file is what the company sent instead.
      """)

  @OptionGroup var options: GlobalOptions

  @Option(
    help: ArgumentHelp("A file with the recovery key; - is standard input. Else it is asked for.", valueName: "file"))
  var recoveryKeyFile: String?

  @Option(help: ArgumentHelp("The company's private key, in place of a recovery key.", valueName: "file"))
  var escrowKeyFile: String?

  @Flag(help: "The company has cleared the passcode: asks for the code that it told, in place of a recovery key.")
  var cleared = false

  @Option(help: ArgumentHelp("A file with that code; - is standard input. Else it is asked for.", valueName: "file"))
  var codeFile: String?

  @Option(
    help: ArgumentHelp(
      "What coffer escrow clear printed for this device, where no order brings it.", valueName: "file"))
  var clearingFile: String?

  @Option(
    help: ArgumentHelp("A file with the new passcode; - is standard input. Else --passcode-file.", valueName: "file"))
  var newPasscodeFile: String?

  @OptionGroup var recovery: NewRecoveryKeyOptions

  @Flag(help: "Take a copy that is older than what this device has seen as the vault from now on.")
  var acceptRestored = false

  func validate() throws {
    if [recoveryKeyFile != nil, escrowKeyFile != nil, isCleared].count(where: { $0 }) > 1 {
      throw ValidationError("Either --recovery-key-file, --escrow-key-file or --cleared.")
    }
  }

  private var isCleared: Bool { cleared || codeFile != nil || clearingFile != nil }

  /// The code, once it is known that it opens something: an agent is not ended for one that does not.
  private func clearingCode(_ path: String) throws -> RecoveryKey {
    let code = try RecoveryKeyEntry.code(codeFile)
    if let clearingFile {
      let bytes = try FileSystem().openNamed(clearingFile).contents(limit: 4 << 10)
      let text = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
      try Container.takeClearing(text, at: path, keyStore: options.keys)
    }
    try Container.requireClearing(code, at: path, keyStore: options.keys)
    return code
  }

  func run() throws {
    let path = try options.vaultPath
    try options.requireReadable()
    try options.requireKeyStoreOutsideVault()
    // What is no vault is said before anyone types 36 symbols.
    guard try FileSystem().status(of: path) != nil else {
      throw Failure.notFound("there is no vault at this place; make one with: coffer init")
    }
    let means: RecoveryMeans =
      if isCleared {
        .clearingCode(try clearingCode(path))
      } else if let escrowKeyFile {
        .escrowKey(try EscrowKeyFile.read(escrowKeyFile))
      } else {
        .recoveryKey(try RecoveryKeyEntry.key(recoveryKeyFile))
      }
    // Whoever has this key may not know the passcode, and an agent that is locked would wait for it forever.
    if try AgentClient.stopAgentTelling(of: options) { Output.note("the agent that held the vault has ended") }
    // With the vault goes the mark of a wipe: by then the company is to be told of that, and not to have it done again.
    if let id = Container.statedID(at: path), try Container.destroyKeysLeft(of: id, in: options.keys) {
      try KeptReceipt.noteWiped(id, in: options.keyStorePath)
    }
    let paper = try recovery.paper(options)
    var keys = KeyOptions()
    keys.recoveryKey = paper?.key
    let container: Container
    do {
      container = try Container.recover(
        at: path, keyStore: options.keys, with: means,
        passcode: { try TypedSecret.newPasscode.new(newPasscodeFile ?? options.passcodeFile) },
        derivation: PasscodeCost.chosen(), options: keys, sniffer: ContentTypeHelper(),
        acceptingOlderState: acceptRestored)
    } catch {
      paper?.discard(after: error)
      throw error
    }
    let id = container.id.description
    try container.close()
    if options.json { return try Output.json(RecoveryKeyAnswer(vaultID: id, recoveryKey: paper?.answer)) }
    try paper?.show()
    Output.line("recovered: the new passcode opens the vault on this device")
  }
}
