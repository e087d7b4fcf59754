internal import ArgumentParser
internal import CofferContainer
internal import CofferKeys
internal import CofferSystem

struct AcceptRestoredCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept-restored", abstract: "Takes a backup that was put back as the vault from now on.",
    discussion: """
      Example:
        coffer accept-restored --vault ~/Files.coffer

      A vault that is older than the newest state this device has seen can be read only: somebody may have put an old
      copy in its place. This accepts it. What was changed since that copy is given up: the newer state, should it come
      back, can then be read and no longer be changed. A company's policy does not go back: the key store remembers
      which one was applied, and until coffer policy refresh has fetched it, all that policy decides is refused.
      """)

  @OptionGroup var options: GlobalOptions

  @Flag(help: "Do not ask.")
  var yes = false

  func run() throws {
    try options.requireReadable()
    let passcode = KeptPasscode(options.passcodeFile)
    let older = try options.open(passcode: passcode.value)
    defer { try? older.close() }
    guard older.isReadOnly else {
      throw Failure.usage("the vault is at the newest state that this device has seen: there is nothing to accept")
    }
    // Accepted all the same, it would be taken for a company's, and not even its files could be taken out any more.
    if case .notEnrolled = older.enrolment, older.isUnknownToKeyStore {
      throw Failure(
        code: 77,
        text: "the key store does not know whether this vault belongs to a company, so it stays as it is. Put the key "
          + "store's backup back, or take the files out with coffer get and store them in a new vault")
    }
    if !yes { try ask(Self.consequences(of: older)) }
    // Given back only now, so that nobody else changes what was asked about while the question stands.
    try older.close()
    let accepted = try options.open(passcode: passcode.value, acceptingOlderState: true)
    try accepted.close()
    if options.json { return try Output.json(["vaultID": accepted.id.description]) }
    Output.line("accepted: this is the vault from now on, and it can be changed")
    if case .outdated = accepted.enrolment { Output.note("fetch the company's present policy: coffer policy refresh") }
  }

  private static func consequences(of container: Container) -> String {
    var text =
      "What was changed in the vault since this copy was made is given up: the newer state, should it come back, can "
      + "then be read and no longer be changed."
    switch container.enrolment {
    case .notEnrolled, .enrolled: break
    case .outdated:
      text +=
        " The vault belongs to a company, whose policy cannot go back: everything that policy decides is refused until "
        + "coffer policy refresh has fetched the present one."
    case .policyMissing:
      text +=
        " The vault belongs to a company, and this copy does not have its policy, as one from before it joined: "
        + "everything that policy decides stays refused in it."
    }
    return text
  }

  private func ask(_ consequences: String) throws {
    Output.note(consequences)
    try VaultName(options.vaultPath).require(to: "accept it")
  }
}

/// A passcode that is asked for once and used twice.
private final class KeptPasscode {
  private let file: String?
  private var kept: SecretBytes?

  init(_ file: String?) { self.file = file }

  func value() throws -> SecretBytes {
    if let kept { return kept }
    let passcode = try TypedSecret.passcode.existing(file)
    kept = passcode
    return passcode
  }
}
