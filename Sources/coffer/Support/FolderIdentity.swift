internal import CofferSystem

/// A folder of the system, however it is named: a copy of a vault elsewhere has the same id and is another vault.
struct FolderIdentity: Hashable, Codable, Sendable {
  let device: UInt64
  let inode: UInt64

  init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }

  /// No folder's: whichever an agent holds.
  static let any = FolderIdentity(device: 0, inode: 0)

  init(_ status: FileStatus) { self.init(device: status.device, inode: status.inode) }

  /// Throws where there is nothing at `path`.
  init(at path: String) throws { self.init(try FileSystem().open(path, .directory).status()) }

  /// The nearest folder on the way to `path` that exists, with a path of it.
  private static func nearest(to path: String) throws -> (path: String, identity: FolderIdentity)? {
    var place = path.hasPrefix("/") ? path : "./" + path
    while true {
      if let found = try identity(place) { return (place, found) }
      guard let slash = place.lastIndex(of: "/") else { return nil }
      place = String(place[..<slash])
    }
  }

  private static func identity(_ path: String) throws -> FolderIdentity? {
    try FileSystem().status(of: path + "/.").map(FolderIdentity.init)
  }

  /// Whether the nearest folder on the way to `path` that exists is this one, or in it.
  func holds(_ path: String) throws -> Bool {
    guard var (place, found) = try Self.nearest(to: path) else { return false }
    while true {
      if found == self { return true }
      place += "/.."
      guard let above = try Self.identity(place), above != found else { return false }
      found = above
    }
  }

  /// Whether the nearest folder on the way to `path` that exists lies on the same file system, wherever that is mounted.
  func sharesFileSystem(with path: String) throws -> Bool { try Self.nearest(to: path)?.identity.device == device }
}
