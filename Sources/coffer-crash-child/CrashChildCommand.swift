internal import CofferVaultTestSupport

/// Started by the tests to be killed; see `CrashChild`.
@main struct CrashChildCommand {
  static func main() throws { try CrashChild.run(Array(CommandLine.arguments.dropFirst())) }
}
