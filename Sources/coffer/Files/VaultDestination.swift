internal import CofferContainer
internal import CofferFiles

/// Where a person wants something stored: a folder of the vault, or a name in one.
struct VaultDestination {
  let isFolder: Bool
  private let path: VaultPath
  private let text: String

  /// Throws where the folder is not there that it is in.
  init(_ text: String, in container: Container) throws {
    self.text = text
    path = try VaultPath(argument: text)
    isFolder = try Self.isFolder(path, container)
    guard !isFolder else { return }
    if text.hasSuffix("/") { try requireFolder() }
    try PathText.naming(path.parent) {
      guard try Self.isFolder(path.parent, container) else {
        throw Failure.notFound("there is no such folder in the vault to store in; make it with: coffer mkdir -p")
      }
    }
  }

  /// Throws where it is a name, which only one thing can get.
  func requireFolder() throws {
    guard !isFolder else { return }
    try PathText.naming(path) {
      throw Failure.notFound("the destination is not a folder in the vault; make it with: coffer mkdir")
    }
  }

  private static func isFolder(_ path: VaultPath, _ container: Container) throws -> Bool {
    do {
      return try container.attributes(at: path).kind == .directory
    } catch let error as ContainerError where error.category == .notFound {
      return false
    }
  }

  /// The path that a file or folder of the system gets. Standard input, `-`, has no name of its own.
  func target(for source: String) throws -> VaultPath {
    guard isFolder else { return path }
    guard source != "-" else {
      throw Failure.usage("standard input has no name; give one, such as \(text)\(text.hasSuffix("/") ? "" : "/")NAME")
    }
    guard let name = source.utf8.split(separator: UInt8(ascii: "/")).last, !name.elementsEqual("..".utf8),
      !name.elementsEqual(".".utf8)
    else { throw Failure.usage("\(source): a folder without a name of its own; give the destination's name") }
    return try path.appending(Array(name))
  }
}
