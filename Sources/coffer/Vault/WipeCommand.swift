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
      where one was given, and with nothing else, unless somebody has a copy of the key store, too.

      A copy or a backup has the vault's keys, and is not wiped: nothing is destroyed (77). Delete its folder instead. So
      it is with a folder whose headers this device did not make, and with a key store that has no key of the vault.
      --all-copies destroys the keys that the key store has by the folder's id, whatever the folder is.

      The vault's agent is ended. Another process that has the vault open keeps what it unlocked until it ends: then wipe
      once more, to remove the rest.
      """)

  @OptionGroup var options: GlobalOptions

  @Flag(help: "Do not ask.")
  var yes = false

  @Flag(help: "Destroy the keys of every copy of the vault, also where the folder is one of them.")
  var allCopies = false

  private struct Answer: Encodable {
    let wiped = true
    let complete: Bool
    /// The keys were there and are destroyed, now or by an earlier wipe that was cut.
    let keysDestroyed: Bool
    /// Whether it opens a copy that was made before; not there where that is not known.
    let recoveryKey: Bool?
    let escrowKey: Bool?
  }

  func run() throws {
    let path = try options.vaultPath
    try options.requireReadable()
    if !yes {
      guard try FileSystem().status(of: path) != nil else { throw Failure.notFound("there is no vault at this place") }
      Output.note(
        allCopies
          ? "everything in the vault and in each copy of it will be lost for good, for those who know the passcode, too"
          : "everything in the vault will be lost for good, for those who know the passcode, too")
      try VaultName(path).require(to: "wipe it")
    }
    let id = Container.statedID(at: path)
    let outcome = try wipe(path)
    let left = Self.copies(outcome)
    var holder = outcome.holder
    // The keys are gone from the disk. Where an agent has them in memory it ends; that it does not is said below.
    if holder != nil, (try? AgentClient.stopAgent(of: options, isForced: true)) == true {
      holder = try finish(path, id)
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
        Answer(
          complete: true, keysDestroyed: outcome.keys != .absent, recoveryKey: outcome.hadRecoveryKey,
          escrowKey: outcome.hadEscrowKey))
    }
    switch outcome.keys {
    case .destroyed: Output.line("wiped. \(left)")
    case .destroyedBefore: Output.line("wiped, as was begun before. \(left)")
    case .absent:
      Output.line("nothing that a key opens was left here, nor a key of it in the key store; the rest is removed")
    }
  }

  /// - Parameter vault: the one that is meant; nil for whichever is there.
  private func wipe(_ path: String, expecting vault: VaultID? = nil) throws -> WipeOutcome {
    let keys = try options.keys
    let (found, keyStore) = (Container.statedID(at: path), try options.keyStorePath)
    do {
      return try Container.wipe(at: path, keyStore: keys, everyCopy: allCopies, expecting: vault ?? found) {
        if let wiped = vault ?? found { try? KeptReceipt.noteWiped(wiped, in: keyStore) }
      }
    } catch let error as ContainerError
      where [.inputOutput, .tryAgain, .cannotCreate, .damaged].contains(error.category)
    {
      guard let id = Container.statedID(at: path), let areKeysLeft = try? Container.hasKeys(of: id, in: keys) else {
        throw error
      }
      if areKeysLeft {
        throw Failure(
          code: Failure.code(error.category),
          text: "\(error.description). Keys of the vault are left: mend that, and run coffer wipe again")
      }
      if isHeld(path) {
        Output.note("the keys are destroyed; what holds the vault is to end")
        _ = try? AgentClient.stopAgent(of: options, isForced: true)
      }
      throw Failure(
        code: Failure.code(error.category),
        text:
          "the keys are destroyed, and no passcode opens the vault any more; but what is left of it, which its recovery key or the "
          + "company's key may open, could not be removed: \(error.description). "
          + (isHeld(path) ? "And a process has the vault open, and can use it until it ends. " : "")
          + "Mend that, and run coffer wipe again")
    }
  }

  /// Removes what the agent has kept. Whatever becomes of that, the keys are destroyed.
  ///
  /// - Returns: who has the vault open yet.
  private func finish(_ path: String, _ vault: VaultID?) throws -> Int32? {
    do {
      return try wipe(path, expecting: vault).holder
    } catch let error as ContainerError {
      // Somebody else has done so.
      if error.category == .notFound { return nil }
      // "Nothing was destroyed" is of this second time alone.
      let isRefused = error.category == .refused
      throw Failure(
        code: isRefused ? 74 : Failure.code(error.category),
        text: "the keys are destroyed, but what is left of the vault could not be removed: "
          + (isRefused ? "delete its folder" : error.description))
    }
  }

  private func isHeld(_ path: String) -> Bool {
    do {
      try Container.requireUnused(at: path)
      return false
    } catch {
      return (error as? ContainerError)?.category == .inUse
    }
  }

  private static func copies(_ outcome: WipeOutcome) -> String {
    let copy = "A copy that was made before"
    return switch (outcome.hadRecoveryKey, outcome.hadEscrowKey) {
    case (false, false): "\(copy) opens only where a copy of the key store was kept, too."
    case (true, false): "\(copy) can still be opened with its recovery key."
    case (false, true): "\(copy) can still be opened with the company's key."
    case (true, true): "\(copy) can still be opened with its recovery key or the company's key."
    case (true, nil): "\(copy) can still be opened with its recovery key, and perhaps with the company's key."
    case (nil, true): "\(copy) can still be opened with the company's key, and perhaps with its recovery key."
    default:
      "\(copy) may still be opened with its recovery key or the company's key, if it had one: nothing is left that says."
    }
  }
}
