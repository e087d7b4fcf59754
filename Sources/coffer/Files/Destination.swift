internal import CofferSystem

/// Where a person wants copies: a folder of the system, or a name in one.
struct Destination {
  let folder: OwnedDescriptor
  /// Nil: copies keep their own names.
  let name: [UInt8]?

  var isFolder: Bool { name == nil }

  /// Throws where the folder is not there.
  init(_ path: String, _ files: FileSystem) throws {
    if let folder = try Self.open(path, files) {
      self.folder = folder
      name = nil
      return
    }
    guard !path.hasSuffix("/") else { throw Failure.notFound("\(path): no such folder") }
    let parts = path.split(separator: "/", omittingEmptySubsequences: true)
    guard let last = parts.last, last != ".", last != ".." else {
      throw Failure.usage("the destination has no name")
    }
    let parent = (path.hasPrefix("/") ? "/" : "") + parts.dropLast().joined(separator: "/")
    guard let folder = try Self.open(parent.isEmpty ? "." : parent, files) else {
      throw Failure.notFound("\(parent): no such folder")
    }
    self.folder = folder
    name = Array(last.utf8)
  }

  /// The folder at `path`; nil where there is none.
  private static func open(_ path: String, _ files: FileSystem) throws -> OwnedDescriptor? {
    do {
      return try files.open(path, .directory)
    } catch  where error.isAbsent {
      return nil
    }
  }
}
