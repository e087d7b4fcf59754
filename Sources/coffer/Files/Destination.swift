internal import CofferSystem

/// Where a person wants copies.
struct Destination {
  enum Place {
    /// In a folder of the system, under their own names.
    case folder(OwnedDescriptor)
    /// Under this name in a folder.
    case name([UInt8], in: OwnedDescriptor)
    /// One after the other into something that is open.
    case stream(OwnedDescriptor)
  }

  let place: Place
  /// As it was typed.
  private let text: String

  /// Throws where the folder is not there.
  init(_ argument: String, _ files: FileSystem) throws {
    text = argument
    place = try Self.place(argument, files)
  }

  var isStream: Bool {
    if case .stream = place { return true }
    return false
  }

  /// The path of what gets `name` in the folder; nil is the folder itself.
  func path(of name: [UInt8]?) -> [UInt8] {
    guard case .folder = place, let name else { return Array(text.utf8) }
    return PathText.joined(Array(text.utf8), name)
  }

  /// Throws where a copy cannot take the place of what is there, as far as that is known before it is made.
  ///
  /// - Parameter name: that of the copy, where the destination is a folder.
  func requireReplaceable(_ name: [UInt8]?, _ files: FileSystem) throws {
    switch (place, name) {
    case (.folder(let folder), let name?), (.name(let name, let folder), _):
      try PathText.naming(path(of: name)) { try Self.requireReplaceable(name, in: folder, files) }
    case (.folder, nil), (.stream, _): break
    }
  }

  /// Files and links are replaced. A device or a fifo is not: whoever names one does not mean a file in its place.
  static func requireReplaceable(_ name: [UInt8], in folder: OwnedDescriptor, _ files: FileSystem) throws {
    switch try files.status(of: name, in: folder)?.kind {
    case .directory?: throw Failure.cannotCreate("the destination has a folder of the same name")
    case .other?:
      throw Failure.cannotCreate("the destination is neither a file nor a folder; write to it with: get PATH - > DEST")
    case .file?, .symbolicLink?, nil: break
    }
  }

  private static func place(_ argument: String, _ files: FileSystem) throws -> Place {
    guard !argument.isEmpty else { throw Failure.usage("the destination is empty; the current folder is .") }
    if let stream = try stream(argument, files) { return .stream(stream) }
    let path = try files.pathNamed(argument)
    if let folder = try open(path, files) { return .folder(folder) }
    guard !path.hasSuffix("/") else { throw Failure.notFound("\(argument): no such folder") }
    let parts = path.split(separator: "/", omittingEmptySubsequences: true)
    guard let last = parts.last, last != ".", last != ".." else {
      throw Failure.usage("the destination has no name")
    }
    let parent = (path.hasPrefix("/") ? "/" : "") + parts.dropLast().joined(separator: "/")
    guard let folder = try open(parent.isEmpty ? "." : parent, files) else {
      throw Failure.notFound("\(parent): no such folder")
    }
    return .name(Array(last.utf8), in: folder)
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
