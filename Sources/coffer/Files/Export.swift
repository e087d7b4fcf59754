internal import CofferContainer
internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem

/// Writes files, links and new folders of a container to the system: each under a temporary name until it is complete.
/// No link is followed on the way, whoever made it.
final class Export {
  private let container: Container
  private let files: FileSystem
  private let form: Form
  let tally = TransferTally(verb: "written")

  /// How content is written.
  enum Form {
    /// As it is, with permissions and times.
    case plain
    /// Encrypted in RNCryptor's format, for the owner only, because the format carries nothing but content.
    case rncryptor(RNCryptorSecret)

    fileprivate func write(
      _ copy: SavedCopy, to output: OwnedDescriptor, isSeekable: Bool, control: TransferControl
    ) throws {
      switch self {
      case .plain: try copy.write(to: output, isSeekable: isSeekable, control: control)
      case .rncryptor(let secret): try copy.writeRNCryptor(to: output, secret: secret, control: control)
      }
    }
  }

  init(container: Container, files: FileSystem, form: Form = .plain) {
    self.container = container
    self.files = files
    self.form = form
  }

  /// Writes `path` to where a person wants it. Of what can be written to a stream there are only files.
  func write(_ path: VaultPath, to destination: Destination, recursive: Bool = false) throws {
    let place = destination.path(of: path.lastName)
    let skippedCount = tally.skippedCount
    switch destination.place {
    case .folder(let folder):
      try write(path, named: path.lastName, in: folder, shownAs: place, recursive: recursive)
    case .name(let name, let folder): try write(path, named: name, in: folder, shownAs: place, recursive: recursive)
    case .stream(let stream): try PathText.naming(path) { try write(path, to: stream) }
    }
    // A folder is there also where something in it was passed over.
    let isThere = try tally.skippedCount == skippedCount || container.attributes(at: path).kind == .directory
    if isThere { tally.add(from: path.text, to: place) }
  }

  /// Writes `path` as `name` into `folder`. The root folder has no name: its entries go into `folder` itself.
  ///
  /// - Parameter place: the path of the copy, for whoever has to be told of it.
  private func write(
    _ path: VaultPath, named name: [UInt8]?, in folder: OwnedDescriptor, shownAs place: [UInt8], recursive: Bool
  ) throws {
    let attributes = try PathText.naming(path) { try container.attributes(at: path) }
    switch (attributes.kind, name) {
    case (.file, let name?): return try writeFile(path, named: name, in: folder, shownAs: place)
    case (.symbolicLink, let name?): return try writeLink(path, named: name, in: folder, shownAs: place)
    case (.fifo, _), (.socket, _): return tally.skip(path.bytes, because: "fifos and sockets have no content")
    case (.file, nil), (.symbolicLink, nil): throw Failure.usage("a file needs a name")
    case (.directory, _): break
    }
    guard recursive else { return try PathText.naming(path) { throw Failure.usage("it is a folder; use -r") } }
    guard let name else { return try writeEntries(of: path, nil, in: folder, shownAs: place) }
    if try files.status(of: name, in: folder) != nil {
      let present = try PathText.naming(place) { try files.open(name, [.directory, .noFollow], in: folder) }
      return try writeEntries(of: path, attributes, in: present, shownAs: place)
    }
    // Readable while it is filled; its own permissions and its name come at the end.
    let temporary = Self.temporaryName()
    do {
      let new = try PathText.naming(place) {
        try files.makeDirectory(temporary, in: folder)
        return try files.open(temporary, [.directory, .noFollow], in: folder)
      }
      try writeEntries(of: path, attributes, in: new, shownAs: place)
      try PathText.naming(place) {
        guard try files.renameWithoutReplacing(temporary, to: name, in: folder) else {
          throw Failure.cannotCreate("the destination has a folder of the same name")
        }
      }
      tally.folders += 1
    } catch {
      try? files.removeTree(temporary, in: folder)
      throw error
    }
  }

  private func writeEntries(
    of path: VaultPath, _ attributes: FileAttributes?, in folder: OwnedDescriptor, shownAs place: [UInt8]
  ) throws {
    for entry in try PathText.naming(path, { try container.list(path) }) {
      try write(
        path.appending(entry.name), named: entry.name, in: folder, shownAs: PathText.joined(place, entry.name),
        recursive: true)
    }
    guard let attributes else { return }
    try PathText.naming(place) {
      try folder.setPermissions(attributes.permissions & 0o777)
      try folder.setModified(attributes.modified)
    }
  }

  private static func temporaryName() -> String { ".coffer-\(Randomness.bytes(8).hexadecimal)" }

  private func writeLink(
    _ path: VaultPath, named name: [UInt8], in folder: OwnedDescriptor, shownAs place: [UInt8]
  ) throws {
    let target = try PathText.naming(path) { try container.readLink(at: path) }
    try PathText.naming(place) {
      try Destination.requireReplaceable(name, in: folder, files)
      let temporary = Self.temporaryName()
      guard try files.makeSymbolicLink(temporary, to: target, in: folder) else {
        throw Failure.cannotCreate("the destination has a file of the same temporary name")
      }
      do {
        try files.rename(temporary, to: name, in: folder)
        try folder.sync()
      } catch {
        _ = try? files.unlink(temporary, in: folder)
        throw error
      }
    }
    tally.links += 1
  }

  private func writeFile(
    _ path: VaultPath, named name: [UInt8], in folder: OwnedDescriptor, shownAs place: [UInt8]
  ) throws {
    let copy = try PathText.naming(path) { try container.openForSaving(path) }
    try PathText.naming(place) { try Destination.requireReplaceable(name, in: folder, files) }
    let temporary = Self.temporaryName()
    do {
      let file = try PathText.naming(place) {
        try files.open(temporary, [.readWrite, .createNew], permissions: 0o600, in: folder)
      }
      try write(copy, of: path, to: file, isSeekable: true)
      try PathText.naming(place) {
        if case .plain = form {
          // Bits that lend the owner's rights to others are not taken from a vault.
          try file.setPermissions(copy.attributes.permissions & 0o777)
          try file.setModified(copy.attributes.modified)
        }
        try file.sync()
      }
      try PathText.naming(path) { try copy.requirePermission() }
      try PathText.naming(place) {
        try files.rename(temporary, to: name, in: folder)
        try folder.sync()
      }
    } catch {
      _ = try? files.unlink(temporary, in: folder)
      throw error
    }
    tally.files += 1
    tally.bytes += copy.attributes.byteCount
  }

  private func write(
    _ copy: SavedCopy, of path: VaultPath, to output: OwnedDescriptor, isSeekable: Bool
  ) throws {
    let transfer = Transfer(total: copy.attributes.byteCount)
    defer { transfer.end() }
    try PathText.naming(path) {
      try form.write(copy, to: output, isSeekable: isSeekable, control: transfer.control)
    }
  }

  /// Writes a file's content to a stream.
  private func write(_ path: VaultPath, to stream: OwnedDescriptor) throws {
    try write(container.openForSaving(path), of: path, to: stream, isSeekable: false)
  }
}
