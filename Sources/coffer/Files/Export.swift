internal import CofferContainer
internal import CofferFiles
internal import CofferSystem

/// Writes files of a container to the system: each under a temporary name until it is complete.
struct Export {
  let container: Container
  let files: FileSystem

  /// Writes `path` as `name` into `folder`. The root folder has no name: its entries go into `folder` itself.
  func write(_ path: VaultPath, named name: [UInt8]?, in folder: OwnedDescriptor, recursive: Bool) throws {
    let attributes = try container.attributes(at: path)
    if attributes.kind == .file {
      guard let name else { throw Failure.usage("a file needs a name") }
      return try writeFile(path, named: name, in: folder)
    }
    guard recursive else { throw Failure.usage("it is a folder; use -r") }
    guard let name else { return try writeEntries(of: path, in: folder) }
    // Open to its owner while it is filled; its own permissions come at the end.
    let isNew = try files.makeDirectory(name, permissions: 0o700, in: folder)
    do {
      let target = try files.open(name, [.directory, .noFollow], in: folder)
      try writeEntries(of: path, in: target)
      try target.setPermissions(attributes.permissions & 0o777)
      try target.setModified(attributes.modified)
    } catch {
      // A refusal leaves nothing: folders that got no file go again.
      if isNew { _ = try? files.removeDirectory(name, in: folder) }
      throw error
    }
  }

  private func writeEntries(of path: VaultPath, in folder: OwnedDescriptor) throws {
    for entry in try container.list(path) {
      try write(path.appending(entry.name), named: entry.name, in: folder, recursive: true)
    }
  }

  private func writeFile(_ path: VaultPath, named name: [UInt8], in folder: OwnedDescriptor) throws {
    let copy = try container.openForSaving(path)
    if let present = try files.status(of: name, in: folder), present.kind == .directory {
      throw Failure.cannotCreate("the destination has a folder of the same name")
    }
    let temporary = ".coffer-\(Randomness.bytes(8).hexadecimal)"
    do {
      let file = try files.open(temporary, [.readWrite, .createNew], permissions: 0o600, in: folder)
      let transfer = Transfer(total: copy.attributes.byteCount)
      defer { transfer.end() }
      try copy.write(to: file, isSeekable: true, control: transfer.control)
      // Bits that lend the owner's rights to others are not taken from a vault.
      try file.setPermissions(copy.attributes.permissions & 0o777)
      try file.setModified(copy.attributes.modified)
      try file.sync()
      try files.rename(temporary, to: name, in: folder)
      try folder.sync()
    } catch {
      _ = try? files.unlink(temporary, in: folder)
      throw error
    }
  }

  static func toStandardOutput(_ path: VaultPath, _ container: Container) throws {
    let copy = try container.openForSaving(path)
    let transfer = Transfer(total: copy.attributes.byteCount)
    defer { transfer.end() }
    try copy.write(to: .standardOutput, isSeekable: false, control: transfer.control)
  }
}
