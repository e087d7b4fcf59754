internal import CofferSystem
internal import Foundation

/// The folders of one app: `CONTAINERS/Data/Application/<UUID>/{Documents, Documents/Inbox, Library, tmp}`, each for
/// the owner only.
public struct AppContainer: Sendable {
  public let path: String
  private let id: UUID
  private let root: String
  private let files: FileSystem

  /// - Parameter containers: the folder of all containers.
  init(id: UUID, containers: String, files: FileSystem) {
    self.id = id
    self.files = files
    root = containers + "/Data/Application"
    path = root + "/" + id.uuidString
  }

  public var inboxPath: String { path + "/Documents/Inbox" }

  func create() throws(AppError) {
    try AppError.catching { () throws(SystemError) in
      for folder in ["Documents/Inbox", "Library", "tmp"] { try files.makeDirectories(path + "/" + folder) }
    }
  }

  /// Removes the container and everything in it; links in it are removed, not followed. One that is not there is no
  /// error.
  func remove() throws(AppError) {
    try AppError.catching { () throws(SystemError) in
      guard try files.status(of: path) != nil else { return }
      let parent = try files.open(root, [.directory, .noFollow])
      try files.removeTree(id.uuidString, in: parent)
      try parent.sync()
    }
  }

  /// Opens the Inbox. Below the containers' folder no part of the way may be a symbolic link.
  func openInbox() throws(AppError) -> OwnedDescriptor {
    do {
      var folder = try files.open(root, [.directory, .noFollow])
      for name in [id.uuidString, "Documents", "Inbox"] {
        folder = try files.open(name, [.directory, .noFollow], in: folder)
      }
      return folder
    } catch {
      throw .damagedContainer
    }
  }
}
