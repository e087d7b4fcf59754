internal import ArgumentParser
internal import CofferContainer
internal import CofferFiles
internal import CofferSystem

struct PutCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "put", abstract: "Stores files in the vault.",
    discussion: """
      Examples:
        coffer put report.pdf /reports/
        tar c src | coffer put - /src.tar
        coffer put -r photos /

      A file that has the name already is replaced when the new one is complete; with --deposit nothing is replaced. An
      interrupted put leaves nothing of the file, or of the new folder, that it was storing. Below a folder, fifos,
      sockets, devices, the vault's own folder and its key store are passed over; the code is 73 then.
      """)

  @OptionGroup var options: GlobalOptions

  @Flag(name: .shortAndLong, help: "Folders with everything in them.")
  var recursive = false

  @Flag(help: "Store also while the vault is locked: such files are protected fully from the next unlock on.")
  var deposit = false

  @Argument(
    help: ArgumentHelp(
      "Files to store (- is standard input), then a folder in the vault or the name for a single file.",
      valueName: "src … dest"))
  var places: [String]

  private var sources: [String] { Array(places.dropLast()) }
  private var destination: String { places[places.count - 1] }

  func validate() throws {
    guard places.count >= 2 else { throw ValidationError("Name what to store, and where.") }
  }

  func run() throws {
    if options.passcodeFile == "-", sources.contains("-"), sources.count > 1 {
      throw Failure.usage("standard input can be one file only")
    }
    // What cannot be read is said before anyone is asked for a passcode.
    let files = FileSystem()
    for source in sources where source != "-" {
      guard !source.isEmpty else { throw Failure.usage("the name of what is to be stored is empty") }
      guard try files.statusNamed(source) != nil else { throw Failure.notFound("\(source): no such file or folder") }
    }
    let tally = try options.withContainer(.toldByCommand) { container in
      Interrupts.catchFromHere()
      // What policy says of it comes first.
      try container.checkImport()
      try GlobalOptions.requireChangeable(container)
      let own = try OwnFolders(options)
      for source in sources where source != "-" { try own.requireOutside(source) }
      let place = try VaultDestination(destination, in: container)
      if sources.count > 1 { try place.requireFolder() }
      let tree = TreeImport(container: container, own: own, isDeposit: deposit)
      for source in sources {
        let target = try place.target(for: source)
        if source == "-" {
          try tree.storeStandardInput(at: target)
        } else {
          try tree.store(source, at: target, recursive: recursive)
        }
        tree.tally.add(from: source, to: target.bytes)
      }
      try container.commitChanges()
      return tree.tally
    }
    if options.json { try Output.json(tally.answer) }
    try tally.requireWhole(isAnswered: options.json)
  }
}
