internal import ArgumentParser
internal import CofferContainer
internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

struct RecoverCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recover", abstract: "Opens the vault with the recovery key, and sets a new passcode.",
    discussion: """
      Examples:
        coffer recover
        coffer recover --recovery-key-file recovery.txt --new-passcode-file new.txt
        coffer recover --accept-restored --vault ~/Files.coffer

      Asks for the recovery key and for a new passcode. Where the key store knows the vault, the former passcode opens
      nothing any more. On another device, or where the key store is lost, the vault is taken on as one that was
      restored; where it was before, its files can then only be read.

      A backup that was put in the vault's place, and is from before the passcode was changed, is opened so, with
      --accept-restored: it is the vault from then on, and what was changed since the backup is given up.

      An agent that holds the vault is ended.

      The recovery key stays valid, unless a new one is made. With --escrow-key-file a company uses its private key in
      place of a recovery key.
      """)

  @OptionGroup var options: GlobalOptions

  @Option(
    help: ArgumentHelp("A file with the recovery key; - is standard input. Else it is asked for.", valueName: "file"))
  var recoveryKeyFile: String?

  @Option(help: ArgumentHelp("The company's private key, in place of a recovery key.", valueName: "file"))
  var escrowKeyFile: String?

  @Option(
    help: ArgumentHelp("A file with the new passcode; - is standard input. Else --passcode-file.", valueName: "file"))
  var newPasscodeFile: String?

  @OptionGroup var recovery: NewRecoveryKeyOptions

  @Flag(help: "Take a copy that is older than what this device has seen as the vault from now on.")
  var acceptRestored = false

  func validate() throws {
    if recoveryKeyFile != nil, escrowKeyFile != nil {
      throw ValidationError("Either --recovery-key-file or --escrow-key-file.")
    }
  }

  func run() throws {
    let path = try options.vaultPath
    try options.requireKeyStoreOutsideVault()
    // What is no vault is said before anyone types 36 symbols.
    guard try FileSystem().status(of: path) != nil else {
      throw Failure.notFound("there is no vault at this place; make one with: coffer init")
    }
    let means: RecoveryMeans =
      if let escrowKeyFile {
        .escrowKey(try EscrowKeyFile.read(escrowKeyFile))
      } else {
        .recoveryKey(try RecoveryKeyEntry.key(recoveryKeyFile))
      }
    // Whoever has this key may not know the passcode, and an agent that is locked would wait for it forever.
    if try AgentClient.stopAgent(of: options) { Output.note("the agent that held the vault has ended") }
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
