internal import ArgumentParser
internal import CofferContainer
internal import CofferKeys
internal import CofferSystem

struct WipeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "wipe", abstract: "Destroys the vault for good.",
    discussion: """
      Example:
        coffer wipe --vault ~/Old.coffer

      The keys go first, at once whatever the size, then the files. No passcode is needed, and none brings anything
      back. A copy of the folder that was made before opens with the vault's recovery key, or with the company's key
      where one was given, and with nothing else.

      The vault's agent is ended. Another process that has the vault open keeps what it unlocked until it ends: then wipe
      once more, to remove the rest.
      """)

  @OptionGroup var options: GlobalOptions

  @Flag(help: "Do not ask.")
  var yes = false

  private struct Answer: Encodable {
    let wiped = true
    let complete: Bool
    let recoveryKey: Bool
    let escrowKey: Bool
  }

  func run() throws {
    let path = try options.vaultPath
    if !yes {
      guard try FileSystem().status(of: path) != nil else { throw Failure.notFound("there is no vault at this place") }
      Output.note("everything in the vault is lost for good, for those who know the passcode, too")
      try VaultName(path).require(to: "wipe it")
    }
    let outcome = try Container.wipe(at: path, keyStore: options.keys)
    let left = Self.copies(outcome)
    var holder = outcome.holder
    if holder != nil, try AgentClient.stopAgent(of: options) {
      // The keys are gone from the disk, and now from the agent's memory: what is left is ciphertext.
      holder = try Container.wipe(at: path, keyStore: options.keys).holder
    }
    if let holder {
      let name = holder > 0 ? "process \(holder)" : "another process"
      throw Failure(
        code: 75,
        text:
          "the keys are destroyed, but \(name) has the vault open and can use it until it ends; then run coffer wipe "
          + "again to remove the rest. \(left)")
    }
    if options.json {
      return try Output.json(
        Answer(complete: true, recoveryKey: outcome.hadRecoveryKey, escrowKey: outcome.hadEscrowKey))
    }
    Output.line("wiped. \(left)")
  }

  private static func copies(_ outcome: WipeOutcome) -> String {
    switch (outcome.hadRecoveryKey, outcome.hadEscrowKey) {
    case (false, false): "No copy of it can be opened by anybody."
    case (true, false): "A copy that was made before can still be opened with its recovery key."
    case (false, true): "A copy that was made before can still be opened with the company's key."
    case (true, true): "A copy that was made before can still be opened with its recovery key or the company's key."
    }
  }
}
