internal import ArgumentParser
internal import CofferContainer
internal import CofferFiles

struct MakeDirectoryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mkdir", abstract: "Makes a folder in the vault.", discussion: "Example:\n  coffer mkdir -p /a/b/c")

  @OptionGroup var options: GlobalOptions

  @Flag(name: .shortAndLong, help: "Also the folders above it; one that is there is no error.")
  var parents = false

  @Argument(help: ArgumentHelp("The new folder.", valueName: "path"))
  var path: String

  func run() throws {
    let path = try VaultPath(argument: self.path)
    guard path.lastName != nil else { throw Failure.usage("the new folder needs a name") }
    try options.withContainer { try $0.makeDirectory(at: path, withParents: parents) }
  }
}

struct MoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mv", abstract: "Renames or moves a file or folder within the vault.",
    discussion: "Example:\n  coffer mv /draft.docx /reports/")

  @OptionGroup var options: GlobalOptions

  @Argument(help: ArgumentHelp("What to move.", valueName: "path"))
  var source: String

  @Argument(help: ArgumentHelp("Its new name, or the folder it goes to.", valueName: "dest"))
  var destination: String

  func run() throws {
    let old = try VaultPath(argument: source)
    try options.withContainer { container in
      var new = try VaultPath(argument: destination)
      if let name = old.lastName, try isFolder(new, container), new != old { new = try new.appending(name) }
      try container.rename(old, to: new)
    }
  }

  private func isFolder(_ path: VaultPath, _ container: Container) throws -> Bool {
    do {
      return try container.attributes(at: path).kind == .directory
    } catch let error as ContainerError where error.category == .notFound {
      if destination.hasSuffix("/") { throw Failure.notFound("the destination is not a folder in the vault") }
      return false
    }
  }
}

struct RemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Removes files from the vault.", discussion: "Example:\n  coffer rm -r /old")

  @OptionGroup var options: GlobalOptions

  @Flag(name: .shortAndLong, help: "Folders with everything in them.")
  var recursive = false

  @Argument(help: ArgumentHelp("What to remove.", valueName: "path"))
  var paths: [String]

  func run() throws {
    let paths = try self.paths.map { try VaultPath(argument: $0) }
    try options.withContainer { container in
      Interrupts.catchFromHere()
      let interrupts = Interrupts.present
      for path in paths {
        if recursive {
          try container.removeRecursively(path, control: TransferControl(isCancelled: { interrupts.isRaised }))
          continue
        }
        guard try container.attributes(at: path).kind != .directory else {
          throw Failure.usage("it is a folder; use -r")
        }
        try container.remove(path)
      }
    }
  }
}
