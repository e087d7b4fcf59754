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

      A file that has the name already is replaced when the new one is complete; with --deposit nothing is replaced. An interrupted put leaves nothing of
      the file, or of the new folder, that it was storing.
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
      guard try files.status(of: source) != nil else { throw Failure.notFound("\(source): no such file or folder") }
    }
    try options.withContainer { container in
      Interrupts.catchFromHere()
      try container.checkImport()
      let path = try VaultPath(argument: destination)
      let folder = try isFolder(path, container)
      guard folder || (sources.count == 1 && !destination.hasSuffix("/")) else {
        throw Failure.notFound("the destination is not a folder in the vault; make it with: coffer mkdir")
      }
      let tree = TreeImport(container: container, isDeposit: deposit)
      for source in sources {
        if source == "-" {
          guard !folder else {
            throw Failure.usage("standard input has no name; give one, such as \(destination)/NAME")
          }
          try tree.storeStandardInput(at: path)
        } else {
          let target = folder ? try path.appending(lastName(of: source)) : path
          try tree.store(source, at: target, recursive: recursive)
        }
      }
      try container.commit()
      if tree.skipped > 0 {
        throw Failure.cannotCreate(
          "\(tree.skipped) item(s) were not stored: only files, folders and symbolic links can be")
      }
    }
  }

  private func isFolder(_ path: VaultPath, _ container: Container) throws -> Bool {
    do {
      return try container.attributes(at: path).kind == .directory
    } catch let error as ContainerError where error.category == .notFound {
      return false
    }
  }

  private func lastName(of source: String) throws -> [UInt8] {
    guard let name = source.utf8.split(separator: UInt8(ascii: "/")).last, name.elementsEqual("..".utf8) == false,
      name.elementsEqual(".".utf8) == false
    else { throw Failure.usage("\(source): a folder without a name of its own; give the destination's name") }
    return Array(name)
  }
}
