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
  /// Fifos and sockets that were passed over: they are names without content.
  private(set) var skipped = 0

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
    switch destination {
    case .folder(let folder): try write(path, named: path.lastName, in: folder, recursive: recursive)
    case .name(let name, let folder): try write(path, named: name, in: folder, recursive: recursive)
    case .stream(let stream): try write(path, to: stream)
    }
  }

  /// Writes `path` as `name` into `folder`. The root folder has no name: its entries go into `folder` itself.
  private func write(_ path: VaultPath, named name: [UInt8]?, in folder: OwnedDescriptor, recursive: Bool) throws {
    let attributes = try container.attributes(at: path)
    switch (attributes.kind, name) {
    case (.file, let name?): return try writeFile(path, named: name, in: folder)
    case (.symbolicLink, let name?): return try writeLink(path, named: name, in: folder)
    case (.fifo, _), (.socket, _):
      skipped += 1
      return
    case (.file, nil), (.symbolicLink, nil): throw Failure.usage("a file needs a name")
    case (.directory, _): break
    }
    guard recursive else { throw Failure.usage("it is a folder; use -r") }
    guard let name else { return try writeEntries(of: path, nil, in: folder) }
    if try files.status(of: name, in: folder) != nil {
      return try writeEntries(of: path, attributes, in: files.open(name, [.directory, .noFollow], in: folder))
    }
    // Readable while it is filled; its own permissions and its name come at the end.
    let temporary = Self.temporaryName()
    do {
      try files.makeDirectory(temporary, in: folder)
      try writeEntries(of: path, attributes, in: files.open(temporary, [.directory, .noFollow], in: folder))
      guard try files.renameWithoutReplacing(temporary, to: name, in: folder) else {
        throw Failure.cannotCreate("the destination has a folder of the same name")
      }
    } catch {
      try? files.removeTree(temporary, in: folder)
      throw error
    }
  }

  private func writeEntries(of path: VaultPath, _ attributes: FileAttributes?, in folder: OwnedDescriptor) throws {
    for entry in try container.list(path) {
      try write(path.appending(entry.name), named: entry.name, in: folder, recursive: true)
    }
    guard let attributes else { return }
    try folder.setPermissions(attributes.permissions & 0o777)
    try folder.setModified(attributes.modified)
  }

  private static func temporaryName() -> String { ".coffer-\(Randomness.bytes(8).hexadecimal)" }

  private func writeLink(_ path: VaultPath, named name: [UInt8], in folder: OwnedDescriptor) throws {
    let target = try container.readLink(at: path)
    try refuseWhatStays(name, in: folder)
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

  /// Files and links are replaced. A device or a fifo is not: whoever names one does not mean a file in its place.
  private func refuseWhatStays(_ name: [UInt8], in folder: OwnedDescriptor) throws {
    switch try files.status(of: name, in: folder)?.kind {
    case .directory?: throw Failure.cannotCreate("the destination has a folder of the same name")
    case .other?:
      throw Failure.cannotCreate("the destination is neither a file nor a folder; write to it with: get PATH - > DEST")
    case .file?, .symbolicLink?, nil: break
    }
  }

  private func writeFile(_ path: VaultPath, named name: [UInt8], in folder: OwnedDescriptor) throws {
    let copy = try container.openForSaving(path)
    try refuseWhatStays(name, in: folder)
    let temporary = Self.temporaryName()
    do {
      let file = try files.open(temporary, [.readWrite, .createNew], permissions: 0o600, in: folder)
      let transfer = Transfer(total: copy.attributes.byteCount)
      defer { transfer.end() }
      try form.write(copy, to: file, isSeekable: true, control: transfer.control)
      if case .plain = form {
        // Bits that lend the owner's rights to others are not taken from a vault.
        try file.setPermissions(copy.attributes.permissions & 0o777)
        try file.setModified(copy.attributes.modified)
      }
      try file.sync()
      try files.rename(temporary, to: name, in: folder)
      try folder.sync()
    } catch {
      _ = try? files.unlink(temporary, in: folder)
      throw error
    }
  }

  /// Writes a file's content to a stream.
  private func write(_ path: VaultPath, to stream: OwnedDescriptor) throws {
    let copy = try container.openForSaving(path)
    let transfer = Transfer(total: copy.attributes.byteCount)
    defer { transfer.end() }
    try form.write(copy, to: stream, isSeekable: false, control: transfer.control)
  }
}
