internal import ArgumentParser

/// How an agent keeps a vault.
struct AgentSettings: ParsableArguments {
  /// What lets the minutes of `--idle-lock` pass.
  static let idleness = "in which no command runs, and nothing is read or written in a mount"

  @Option(
    name: .customLong("idle-lock"), parsing: .unconditional,
    help: ArgumentHelp(
      "Lock after so many minutes \(idleness); parts of one are allowed, and 0 is never. (default: 15)",
      valueName: "minutes"))
  private var statedIdleLock: Double?

  @Option(
    name: .customLong("grace"), parsing: .unconditional,
    help: ArgumentHelp(
      "What is being read or written when the vault is locked has so long to finish. (default: 10)",
      valueName: "seconds"))
  private var statedGrace: Double?

  /// Minutes.
  var idleLock: Double { statedIdleLock ?? 15 }
  /// Seconds.
  var grace: Double { statedGrace ?? 10 }

  func validate() throws {
    guard idleLock.isFinite, (0...525_600).contains(idleLock) else {
      throw ValidationError("--idle-lock takes minutes, from 0 (never) to a year's.")
    }
    guard grace.isFinite, (0...3600).contains(grace) else {
      throw ValidationError("--grace takes seconds, from 0 to an hour's.")
    }
  }

  var areStated: Bool { statedIdleLock != nil || statedGrace != nil }

  /// Says so where somebody asked for something else than a running agent has.
  func noteDifference(from status: AgentStatus) {
    let differ =
      statedIdleLock.map { $0 != status.idleLockMinutes } ?? false
      || statedGrace.map { $0 != status.graceSeconds } ?? false
    guard differ else { return }
    Output.note(
      "the agent was running already and keeps its settings: it locks "
        + (status.idleLockMinutes > 0 ? "after \(status.idleLockMinutes.counted("minute"))" : "never by itself")
        + ", with \(status.graceSeconds.counted("second")) to finish. For others: coffer agent stop, and unlock again")
  }

  /// The command line of an agent with these settings, which reads the passcode from its standard input.
  func arguments(for options: GlobalOptions) throws -> [String] {
    let options = try options.absolute
    return [
      "agent", "run", "--background", "--vault", options.vault ?? "", "--key-store", options.keyStore ?? "",
      "--passcode-file", "-", "--idle-lock", "\(idleLock)", "--grace", "\(grace)",
    ]
  }
}
