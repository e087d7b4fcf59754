internal import CofferVaultTestSupport
internal import Foundation

/// Started by the tests to be killed, see `CrashChild`; and by `Scripts/sanitize`, `provoke` and the name of a
/// `Provocation` behind it, to see that the sanitizer reports one.
@main struct CrashChildCommand {
  static func main() {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.count == 2, arguments[0] == "provoke", let provocation = Provocation(rawValue: arguments[1]) {
      return provocation.carryOut()
    }
    do {
      try CrashChild.run(arguments)
    } catch {
      // The disk went away under it, as some tests have it.
      exit(74)
    }
  }
}
