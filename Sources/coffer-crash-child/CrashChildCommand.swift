internal import CofferVaultTestSupport
internal import Foundation

/// Started by the tests to be killed; see `CrashChild`.
@main struct CrashChildCommand {
  static func main() {
    do {
      try CrashChild.run(Array(CommandLine.arguments.dropFirst()))
    } catch {
      // The disk went away under it, as some tests have it.
      exit(74)
    }
  }
}
