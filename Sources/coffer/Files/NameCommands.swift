internal import ArgumentParser
internal import CofferContainer
internal import CofferFiles
internal import Synchronization

struct MakeDirectoryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mkdir", abstract: "Makes a folder in the vault.", discussion: "Example:\n  coffer mkdir -p /a/b/c")

  @OptionGroup var options: GlobalOptions

  @Flag(name: .shortAndLong, help: "Also the folders above it; one that is there is no error.")
  var parents = false

  @Argument(help: ArgumentHelp("The new folder.", valueName: "path"))
  var path: String

  private struct Answer: Encodable {
    let path: String
    /// `false` where it was there.
    let made: Bool
  }

  func run() throws {
    let path = try VaultPath(argument: self.path)
    guard path.lastName != nil else { throw Failure.usage("the new folder needs a name") }
    let isMade = try options.withContainer(.refused) { container in
      try PathText.naming(path) {
        let isMade = try !parents || !container.isThere(path)
        do {
          try container.makeDirectory(at: path, withParents: parents)
        } catch let error as ContainerError where error.category == .notFound {
          throw try Failure.notFound(
            parents || container.isThere(path.parent)
              ? "something above it is not a folder" : "the folder above it is not there; with -p it is made, too")
        }
        return isMade
      }
    }
    if options.json { try Output.json(Answer(path: path.text, made: isMade)) }
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

  private struct Answer: Encodable {
    let from: String
    let to: String
  }

  func run() throws {
    let old = try VaultPath(argument: source)
    let target = try VaultPath(argument: destination)
    let new = try options.withContainer(.refused) { container in
      _ = try PathText.naming(old) { try container.attributes(at: old) }
      return try PathText.naming(target) {
        var new = target
        if let name = old.lastName, try isFolder(new, container), new != old { new = try new.appending(name) }
        do {
          try container.rename(old, to: new)
        } catch let error as ContainerError where error.category == .notFound {
          // rename(2) puts no folder in a file's place.
          if try container.isThere(new) { throw Failure.cannotCreate("a file of that name is there already") }
          throw Failure.notFound("the folder that it should go to is not there")
        }
        return new
      }
    }
    if options.json { try Output.json(Answer(from: old.text, to: new.text)) }
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

  private struct Answer: Encodable {
    /// Those that were named.
    let removed: [String]
    /// Everything, also below folders.
    let items: Int
  }

  func run() throws {
    let paths = try self.paths.map { try VaultPath(argument: $0) }
    let removed = RemovalCount()
    try options.withContainer(.refused) { container in
      Interrupts.catchFromHere()
      let interrupts = Interrupts.present
      let control = TransferControl(progress: { removed.add($0) }, isCancelled: { interrupts.isRaised })
      for path in paths {
        try PathText.naming(path) {
          if recursive { return try container.removeRecursively(path, control: control) }
          guard try container.attributes(at: path).kind != .directory else {
            throw Failure.usage("it is a folder; use -r")
          }
          try container.remove(path)
          removed.add(1)
        }
      }
    }
    if options.json { try Output.json(Answer(removed: paths.map(\.text), items: removed.value)) }
  }
}

/// Names that were taken away, counted by whatever thread does it.
private final class RemovalCount: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .relaxed) }

  func add(_ more: Int) { count.wrappingAdd(more, ordering: .relaxed) }
}

extension Container {
  /// Whether there is anything at `path`.
  fileprivate func isThere(_ path: VaultPath) throws -> Bool {
    do {
      _ = try attributes(at: path)
      return true
    } catch let error as ContainerError where error.category == .notFound {
      return false
    }
  }
}
