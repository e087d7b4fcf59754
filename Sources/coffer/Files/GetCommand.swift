internal import ArgumentParser
internal import CofferContainer
internal import CofferFiles
internal import CofferSystem

struct GetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Copies files out of the vault.",
    discussion: """
      Examples:
        coffer get /reports/report.pdf .
        coffer get -r /photos ~/Pictures
        coffer get /src.tar - | tar x

      On a device that belongs to a company this asks for the action saveCopy. A copy appears under its name when it is
      complete.
      """)

  @OptionGroup var options: GlobalOptions

  @Flag(name: .shortAndLong, help: "Folders with everything in them.")
  var recursive = false

  @Argument(
    help: ArgumentHelp(
      "Files in the vault, then a folder, a name for a single file, or - for standard output.",
      valueName: "path … dest"))
  var places: [String]

  private var paths: [String] { Array(places.dropLast()) }
  private var destination: String { places[places.count - 1] }

  func validate() throws {
    guard places.count >= 2 else { throw ValidationError("Name what to copy, and where to.") }
  }

  func run() throws {
    // What cannot be written to is said before anyone is asked for a passcode.
    let files = FileSystem()
    let place = try Destination(destination, files)
    if case .name = place.place, paths.count > 1 { throw Failure.notFound("\(destination): no such folder") }
    let tally = try options.withContainer { container in
      Interrupts.catchFromHere()
      let export = Export(container: container, files: files)
      for path in paths { try export.write(VaultPath(argument: path), to: place, recursive: recursive) }
      return export.tally
    }
    if options.json, !place.isStream { try Output.json(tally.answer) }
    try tally.requireWhole(isAnswered: options.json && !place.isStream)
  }
}

struct CatCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cat", abstract: "Writes a file of the vault to standard output.",
    discussion: "Example:\n  coffer cat /notes.txt | less")

  @OptionGroup var options: GlobalOptions

  @Argument(help: ArgumentHelp("A file in the vault.", valueName: "path"))
  var path: String

  func run() throws {
    try options.withContainer { container in
      Interrupts.catchFromHere()
      let files = FileSystem()
      try Export(container: container, files: files).write(VaultPath(argument: path), to: Destination("-", files))
    }
  }
}
