internal import ArgumentParser
internal import CofferContainer
internal import CofferSystem

struct UnlockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unlock",
    abstract: "Asks for the passcode once, and keeps the vault open for the commands that follow.",
    discussion: """
      Example:
        coffer unlock --idle-lock 30

      A process of yours in the background, the agent, then holds the open vault, and every command goes through it.
      coffer lock takes the keys away, coffer unlock brings them back, and coffer agent stop ends the agent. The settings
      are those of the agent that is started; one that runs already keeps its own.
      """)

  @OptionGroup var options: GlobalOptions
  @OptionGroup var settings: AgentSettings

  @Flag(help: "Hold the vault in this process, until it is ended.")
  var foreground = false

  func run() throws {
    if foreground {
      return try AgentProcess(options: options, settings: settings)
        .run(
          passcode: { try TypedSecret.passcode.existing(options.passcodeFile) },
          didStart: { Output.line("unlocked, until this program ends") })
    }
    if let status = try AgentClient.connect(options)?.status(), status.state == .unlocked {
      return try show()
    }
    try startAgent()
    try show()
  }

  /// Lets an agent have the vault unlocked: the one that is there, or a new one; whether it is new.
  @discardableResult
  func startAgent() throws -> Bool {
    // What cannot be opened is said before anyone is asked for a passcode.
    guard let id = Container.statedID(at: try options.vaultPath), let place = try AgentPlace.of(id, making: true) else {
      try options.open().close()
      return false
    }
    let passcode = try TypedSecret.passcode.existing(options.passcodeFile)
    // Two that come here at the same moment: the second one finds the first one's agent.
    let start = try place.takeStart()
    defer { start.unlock() }
    if let agent = try AgentClient.connect(options), try agent.request(.unlock(passcode)) != nil { return false }
    try AgentProcess(options: options, settings: settings).startInBackground(passcode: passcode)
    return true
  }

  /// What the agent says of itself.
  private func show() throws {
    guard let status = try AgentClient.connect(options)?.status() else {
      throw Failure(code: 75, text: "the agent has ended again; try again")
    }
    settings.noteDifference(from: status)
    if let fingerprint = status.escrowKeyFingerprint { Output.note("\(EscrowNotice.byPolicy): \(fingerprint)") }
    if options.json { return try Output.json(status) }
    let idle = status.idleLockMinutes
    Output.line(
      idle > 0
        ? "unlocked; locks after \(idle.counted("minute")) \(AgentSettings.idleness)"
        : "unlocked; never locks by itself")
  }
}

struct LockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lock", abstract: "Takes away the keys that a locked vault must not have.",
    discussion: """
      Examples:
        coffer lock
        coffer lock --now

      The agent goes on: names can be listed, and files of the classes until-first-unlock and none can be read. coffer
      agent stop takes those away, too.
      """)

  @OptionGroup var options: GlobalOptions

  @Flag(help: "Without time for what is being read or written to finish.")
  var now = false

  func run() throws {
    guard let text = try AgentClient.connect(options)?.request(.lock(immediately: now)) else {
      try AgentClient.requireNoHolder(of: options)
      // Nobody is to take a vault for locked that is another one.
      guard try AgentClient.isVaultSeen(options) else { throw Failure.notFound(AgentClient.noVault) }
      if options.json { return try Output.json(["running": false]) }
      return Output.line("nothing is unlocked: no agent holds this vault")
    }
    guard options.json else { return Output.line(text) }
    if let status = try AgentClient.connect(options)?.status() { try Output.json(status) }
  }
}
