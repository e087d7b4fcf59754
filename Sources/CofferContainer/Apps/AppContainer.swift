internal import CofferSystem
internal import Foundation

/// The folders of one app: `CONTAINERS/Data/Application/<UUID>/{Documents, Documents/Inbox, Library, tmp}`, each for
/// the owner only. Below the containers' folder no part of a way may be a symbolic link.
public struct AppContainer: Sendable {
  public let path: String
  private let id: UUID
  private let containers: String
  private let files: FileSystem

  private static let place = ["Data", "Application"]

  /// - Parameter containers: the folder of all containers.
  init(id: UUID, containers: String, files: FileSystem) {
    self.id = id
    self.files = files
    self.containers = containers
    path = ([containers] + Self.place + [id.uuidString]).joined(separator: "/")
  }

  public var inboxPath: String { path + "/Documents/Inbox" }

  func create() throws(AppError) {
    try AppError.catching { () throws(SystemError) in
      try files.makeDirectories(containers)
      for names in [["Documents", "Inbox"], ["Library"], ["tmp"]] {
        _ = try folder(Self.place + [id.uuidString] + names, creating: true)
      }
    }
  }

  /// Removes the container and everything in it; links in it are removed, not followed. One that is not there is no
  /// error.
  func remove() throws(AppError) {
    try AppError.catching { () throws(SystemError) in
      guard try files.status(of: path) != nil else { return }
      let parent = try folder(Self.place)
      try files.removeTree(id.uuidString, in: parent)
      try parent.sync()
    }
  }

  /// Opens the Inbox.
  func openInbox() throws(AppError) -> OwnedDescriptor {
    do {
      return try folder(Self.place + [id.uuidString, "Documents", "Inbox"])
    } catch {
      throw .damagedContainer
    }
  }

  private func folder(_ names: [String], creating: Bool = false) throws(SystemError) -> OwnedDescriptor {
    var folder = try files.open(containers, .directory)
    for name in names {
      if creating, try files.makeDirectory(name, in: folder) { try folder.sync() }
      folder = try files.open(name, [.directory, .noFollow], in: folder)
    }
    return folder
  }
}
