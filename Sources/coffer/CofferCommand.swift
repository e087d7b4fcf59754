internal import ArgumentParser
internal import CofferSystem
internal import Foundation

@main
struct CofferCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "coffer",
    abstract: "Keeps files encrypted, and lets them out only to approved apps.",
    discussion: """
      Example:
        export COFFER_VAULT=~/Files.coffer
        coffer init && coffer put report.pdf / && coffer ls

      The vault is --vault, else COFFER_VAULT. Exit codes: 0 done, 64 usage, 65 damaged or tampered data, 66 no such
      file, 69 server unavailable, 70 internal, 73 cannot create, 74 input or output, 75 try again later, 77 refused
      (policy, locked, wrong passcode). What a signal interrupts ends by it: 130 for Control-C.
      """,
    version: "0.1.0",
    groupedSubcommands: [
      CommandGroup(
        name: "Vault",
        subcommands: [
          InitCommand.self, UnlockCommand.self, LockCommand.self, AgentCommand.self, InfoCommand.self,
          PasscodeCommand.self, RecoverCommand.self, WipeCommand.self, VerifyCommand.self, BackupCommand.self,
          AcceptRestoredCommand.self,
        ]),
      CommandGroup(
        name: "Files",
        subcommands: [
          PutCommand.self, GetCommand.self, CatCommand.self, ListCommand.self, StatCommand.self,
          MakeDirectoryCommand.self, MoveCommand.self, RemoveCommand.self, ProtectCommand.self, ImportCommand.self,
          ExportCommand.self,
        ]),
    ] + mounting + [
      CommandGroup(
        name: "Company",
        subcommands: [EnrollCommand.self, PolicyCommand.self, AuditCommand.self, EscrowCommand.self]),
      CommandGroup(
        name: "Apps",
        subcommands: [AppsCommand.self, AppCommand.self, ShareCommand.self]),
    ])

  private static var mounting: [CommandGroup] {
    #if canImport(CofferMount)
      [CommandGroup(name: "Mounting", subcommands: [MountCommand.self, UnmountCommand.self])]
    #else
      []
    #endif
  }

  static func main() async {
    do {
      try ProcessHardening.occupyStandardDescriptors()
      try ProcessHardening.apply()
      AllocatorTuning.keepFreedBlocks()
      AllocatorTuning.overwriteFreedBlocks()
      try Arguments.requireTold()
      try Arguments.requireUTF8()
      var command = try parseAsRoot()
      if let served = command as? any ServedCommand, let end = try AgentClient.run(served) { try end.endProcess() }
      if var command = command as? any AsyncParsableCommand {
        // For Swift's pool, the network's event loops, and what opens a vault.
        try NewThread.requireRoom(for: 2 * ProcessInfo.processInfo.activeProcessorCount + 4)
        try await command.run()
      } else {
        try command.run()
      }
      try Output.finish()
    } catch {
      end(with: Failure.reported(error))
    }
  }

  /// Ends the process: by the signal that interrupted its command, so that a shell which waits for it ends its script as
  /// well; else with the failure's code.
  private static func end(with error: any Error) -> Never {
    if exitCode(for: error).rawValue == 130, let number = Interrupts.ofProcess.signal {
      SignalRelay.endProcess(by: number)
    }
    let text = fullMessage(for: error, columns: .max)
    guard HelpText.isHelp(text) else {
      if Session.present.errors.isTerminal { exit(withError: error) }
      let masked = Arguments.masked(text)
      if masked == text { exit(withError: error) }
      Output.error(masked + "\n")
      exit(withError: exitCode(for: error))
    }
    Output.text(HelpText.wrapped(text, columns: Terminal.columns) + "\n")
    do { try Output.finish() } catch { exit(withError: Failure.reported(error)) }
    exit(withError: ExitCode.success)
  }
}

/// The command line as the system gave it.
enum Arguments {
  /// Swift reads them from /proc, and tells of none at all where that is not there: this command would do nothing, as if it had been
  /// asked for help.
  static func requireTold() throws {
    if CommandLine.argc == 0 {
      throw Failure(
        code: 75,
        text: "what this command was asked for cannot be read: /proc is not mounted here; mount it, and try again")
    }
  }

  /// A refusal of the parser's for a log, without what it quotes of what was typed: it may be a name, or a passcode in a wrong place.
  static func masked(_ text: String) -> String {
    let arguments = CommandLine.arguments.dropFirst()
    let isOption = arguments.prefix { $0 != "--" }.map { argument in
      let name = argument.prefix { $0 != "=" }
      return name.hasPrefix("--")
        ? name.dropFirst(2).allSatisfy { $0 == "-" || $0.isASCII && $0.isLowercase || $0.isNumber }
        : name.hasPrefix("-") && name.count == 2
    }
    // Each is looked for in the text, which may name them all.
    guard arguments.count <= 200 else { return "Error: the arguments cannot be taken; \(arguments.count) are given" }
    let typed = arguments.enumerated().flatMap { position, argument -> [Substring] in
      let value = argument.split(separator: "=", maxSplits: 1).dropFirst()
      return position < isOption.count && isOption[position] ? Array(value) : [argument[...]] + value
    }
    return typed.filter { !$0.isEmpty }.sorted { $0.count > $1.count }
      .reduce(text) { $0.replacing("'\($1)'", with: "<private>") }
  }

  /// Swift repairs bytes that are not UTF-8, and the repaired name would be another file's: refuse.
  static func requireUTF8() throws {
    for index in 0..<Int(CommandLine.argc) {
      guard let argument = CommandLine.unsafeArgv[index] else { continue }
      guard String(validatingCString: argument) != nil else {
        throw ValidationError(
          "An argument is not valid UTF-8, and cannot be taken. A file with such a name is stored with the folder that holds it: put -r "
            + "keeps it as it is.")
      }
    }
  }
}
