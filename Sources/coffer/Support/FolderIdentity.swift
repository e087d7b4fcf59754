internal import CofferSystem

/// A folder of the system, however it is named: a copy of a vault elsewhere has the same id and is another vault.
struct FolderIdentity: Hashable, Sendable {
  let device: UInt64
  let inode: UInt64

  init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }

  init(_ status: FileStatus) { self.init(device: status.device, inode: status.inode) }

  /// Throws where there is nothing at `path`.
  init(at path: String) throws { self.init(try FileSystem().open(path, .directory).status()) }

  /// Whether the nearest folder on the way to `path` that exists is this one, or in it.
  func holds(_ path: String) throws -> Bool {
    let files = FileSystem()
    func identity(_ path: String) throws -> FolderIdentity? {
      try files.status(of: path + "/.").map(FolderIdentity.init)
    }
    var place = path.hasPrefix("/") ? path : "./" + path
    while try identity(place) == nil, let slash = place.lastIndex(of: "/") { place = String(place[..<slash]) }
    while let found = try identity(place) {
      if found == self { return true }
      if try identity(place + "/..") == found { return false }
      place += "/.."
    }
    return false
  }
}
