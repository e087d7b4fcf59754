internal import ArgumentParser
internal import Foundation

/// What every command but `run` takes.
struct CommonOptions: ParsableArguments {
  @OptionGroup var dataOptions: DataOptions
  @Flag(help: "Print a JSON object instead of one value.") var json = false
}

/// Where the server keeps everything.
struct DataOptions: ParsableArguments {
  @Option(
    name: .customLong("data"),
    help: """
      The data directory (default: $COFFER_SERVER_DATA, else coffer-server in $XDG_DATA_HOME or in ~/.local/share).
      """)
  var path: String?

  /// The folder that was given, or the user's own (XDG Base Directory Specification).
  func resolved(_ environment: [String: String] = ProcessInfo.processInfo.environment) throws -> String {
    if let path = path ?? environment["COFFER_SERVER_DATA"] { return path }
    // The specification says to ignore a path that is not absolute.
    if let data = environment["XDG_DATA_HOME"], data.hasPrefix("/") { return data + "/coffer-server" }
    guard let home = environment["HOME"], home.hasPrefix("/") else {
      throw ValidationError("There is no home directory: give --data.")
    }
    return home + "/.local/share/coffer-server"
  }
}
