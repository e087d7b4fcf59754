internal import ArgumentParser
internal import CofferSystem

struct AgentCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "agent", abstract: "The process that holds an open vault: what it does, and ending it.",
    discussion: "Examples:\n  coffer agent status\n  coffer agent stop",
    subcommands: [AgentStatusCommand.self, AgentStopCommand.self, AgentRunCommand.self])
}

struct AgentStatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Shows whether an agent holds the vault, and how.",
    discussion: "Example:\n  coffer agent status --json")

  @OptionGroup var options: GlobalOptions

  @Flag(help: "Wait until the vault is locked, and its keys are gone.")
  var untilLocked = false

  func run() throws {
    guard let status = try AgentClient.connect(options)?.status(untilLocked: untilLocked) else {
      try AgentClient.requireNoHolder(of: options)
      if options.json { return try Output.json(["running": false]) }
      guard try AgentClient.isVaultSeen(options) else { return Output.line(AgentClient.noVault) }
      return Output.line("no agent holds this vault: each command opens it by itself")
    }
    if options.json { return try Output.json(status) }
    Output.line("process    \(status.process)")
    Output.line("vault      \(status.vaultID)\(status.readOnly ? ", read only" : "")")
    if let folder = status.folder { Output.line("folder     \(PathText.shown(Array(folder.utf8)))") }
    Output.line("state      \(status.state.rawValue) since \(status.since)")
    let idle =
      status.idleLockMinutes > 0
      ? "after \(status.idleLockMinutes.counted("minute")) \(AgentSettings.idleness)" : "never"
    Output.line("locks      \(idle); what is at work then has \(status.graceSeconds.counted("second"))")
    Output.line("commands   \(status.commands) running")
    if let company = status.company { Output.line("company    \(company)") }
    if let fault = status.auditFault { Output.line("audit      \(fault)") }
    if let fingerprint = status.escrowKeyFingerprint {
      Output.line("escrow     \(EscrowNotice.byPolicy): \(fingerprint)")
    }
    // Nobody can do anything about those that are seen nowhere.
    for mount in status.mountDetails ?? [] where !(mount.hasEnded ?? false) || !mount.detached {
      Output.line("mounted    \(mount.line)")
    }
    if status.waitsForRoom ?? false {
      Output.line(
        "waiting    what programs wrote last is in memory alone: there was no room for it on the vault's disk")
    }
    if status.pagesLost ?? false {
      Output.line(
        "lost       what programs had stored to mappings of files: not all of it could be stored. Told until the agent or the mount is ended"
      )
    }
    Output.line("swap       \(status.memoryLocked ? "all memory is kept out of it" : "only keys are kept out of it")")
    Output.line("dumps      \(status.coreDumpsOff ? "no core dumps, no debuggers" : "core dumps are possible")")
  }
}

extension AgentStatus.Mount {
  /// For a person.
  fileprivate var line: String {
    var notes: [String] = []
    if folder != "/" { notes.append("folder \(PathText.shown(Array(folder.utf8)))") }
    if readOnly { notes.append("read only") }
    if allowOther { notes.append("for other users too") }
    if hasEnded ?? false { notes.append("ended, but not out of the tree: coffer unmount clears it away") }
    if hidden ?? false {
      notes.append("hidden by what was mounted since")
    } else if detached {
      notes.append("taken out of the tree, but programs use it still")
    }
    return ([PathText.shown(Array(place.utf8))] + notes).joined(separator: ", ")
  }
}

struct AgentStopCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stop", abstract: "Ends the agent: what was done is stored, and no key stays.",
    discussion: """
      Example:
        coffer agent stop

      Where what programs wrote last cannot be stored, the agent says so and goes on: on a full disk until there is room.
      Commands that are running are interrupted, and mounts end: where programs use files in one, they are named. When it
      returns, the vault can be opened by others.
      """)

  @OptionGroup var options: GlobalOptions

  @Flag(help: "Also where what programs wrote last cannot be stored, and is lost.")
  var force = false

  func run() throws {
    let wasRunning = try AgentClient.stopAgentTelling(of: options, isForced: force)
    if !wasRunning { try AgentClient.requireNoHolder(of: options) }
    if options.json { return try Output.json(["wasRunning": wasRunning]) }
    if wasRunning { return Output.line("the agent has ended") }
    Output.line(try AgentClient.isVaultSeen(options) ? "no agent holds this vault" : AgentClient.noVault)
  }
}

struct AgentRunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run", abstract: "Is the agent, for those who start it themselves, such as a service manager.",
    discussion: """
      Example:
        coffer agent run --vault ~/Files.coffer --passcode-file /run/secrets/passcode

      Prints a line when commands find it. SIGTERM and SIGINT end it, SIGHUP and SIGUSR1 lock the vault at once.
      """)

  @OptionGroup var options: GlobalOptions
  @OptionGroup var settings: AgentSettings

  @Flag(help: .hidden)
  var background = false

  func run() throws {
    try AgentProcess(options: options, settings: settings)
      .run(passcode: { try TypedSecret.passcode.existing(options.passcodeFile) }, didStart: didStart)
  }

  private func didStart() throws {
    guard background else { return Output.line("ready") }
    // Whoever started it waits no longer, and goes. Where they have gone already, nobody wants this any more.
    SignalRelay.ignoreBrokenPipes()
    try OwnedDescriptor.standardOutput.writeAll(Array("ready\n".utf8))
    let nothing = try FileSystem().open("/dev/null", .readWrite)
    for standard in [OwnedDescriptor.standardInput, .standardOutput, .standardError] { try nothing.replace(standard) }
  }
}
