internal import CofferSystem

/// Where a person wants copies.
enum Destination {
  /// In a folder of the system, under their own names.
  case folder(OwnedDescriptor)
  /// Under this name in a folder.
  case name([UInt8], in: OwnedDescriptor)
  /// One after the other into something that is open.
  case stream(OwnedDescriptor)

  /// Throws where the folder is not there.
  init(_ argument: String, _ files: FileSystem) throws {
    if let stream = try Self.stream(argument, files) {
      self = .stream(stream)
      return
    }
    let path = try files.pathNamed(argument)
    if let folder = try Self.open(path, files) {
      self = .folder(folder)
      return
    }
    guard !path.hasSuffix("/") else { throw Failure.notFound("\(argument): no such folder") }
    let parts = path.split(separator: "/", omittingEmptySubsequences: true)
    guard let last = parts.last, last != ".", last != ".." else {
      throw Failure.usage("the destination has no name")
    }
    let parent = (path.hasPrefix("/") ? "/" : "") + parts.dropLast().joined(separator: "/")
    guard let folder = try Self.open(parent.isEmpty ? "." : parent, files) else {
      throw Failure.notFound("\(parent): no such folder")
    }
    self = .name(Array(last.utf8), in: folder)
  }

  /// Standard output, or what else the person's program has open.
  private static func stream(_ argument: String, _ files: FileSystem) throws -> OwnedDescriptor? {
    if argument == "-" { return Session.present.output }
    if let given = try Session.present.given(argument) {
      return given.isFolder || !given.below.isEmpty ? nil : given.descriptor
    }
    return OwnPlace(argument) == .terminal ? try files.open(argument, .writeOnly) : nil
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
