internal import ArgumentParser
internal import CofferSystem
internal import Foundation

/// `coffer-server`.
@main
struct CofferServerCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "coffer-server",
    abstract: "The policy server: companies approve apps, devices fetch signed policy.",
    discussion: """
      Exit codes: 0 done, 64 usage, 65 damaged data, 66 no such file or tenant, 69 the address or the store is not \
      available, 70 internal, 73 it exists already, 74 input or output, 75 try again later, 77 refused.
      """,
    version: "0.1.0",
    subcommands: [
      RunCommand.self, TenantCommand.self, AdminCommand.self, TokenCommand.self, EnrollmentCommand.self,
      AuditCommand.self, BackupCommand.self, RestoreCommand.self,
    ])

  static func main() async {
    do {
      try ProcessHardening.occupyStandardDescriptors()
    } catch {
      // There is nowhere to say why.
      exit(withError: ExitCode(74))
    }
    if CommandLine.argc == 0 {
      // Swift reads them from /proc, and tells of none where that is not there: as if help had been asked for.
      FileHandle.standardError.write(
        Data(
          "coffer-server: what was asked for cannot be read: /proc is not mounted here; mount it, and try again\n".utf8)
      )
      exit(withError: ExitCode(75))
    }
    do {
      var command = try parseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch {
      let text = fullMessage(for: error, columns: .max)
      guard HelpText.isHelp(text) else { exit(withError: error) }
      do {
        try StandardOutput.write(line: HelpText.wrapped(text, columns: Terminal.columns))
      } catch {
        exit(withError: ExitCode(74))
      }
      exit(withError: ExitCode.success)
    }
  }
}
