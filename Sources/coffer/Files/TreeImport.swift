internal import CofferContainer
internal import CofferFiles
internal import CofferSystem

/// Stores files and folders of the system in a container.
final class TreeImport {
  private let container: Container
  private let own: OwnFolders
  private let isDeposit: Bool
  private let files = FileSystem()
  let tally = TransferTally(verb: "stored")

  /// - Parameter isDeposit: files are stored also while the vault is locked, and replace nothing.
  init(container: Container, own: OwnFolders, isDeposit: Bool = false) {
    self.container = container
    self.own = own
    self.isDeposit = isDeposit
  }

  func storeStandardInput(at path: VaultPath) throws {
    let source = ImportSource(
      descriptor: Session.present.input, byteCount: nil, permissions: 0o600, modified: nil)
    try transfer(source, named: Array("-".utf8), to: path)
  }

  func store(_ path: String, at target: VaultPath, recursive: Bool) throws {
    let name = Array(path.utf8)
    // A link that a person names is followed, as the familiar tools do.
    // Not waiting for a fifo's writer here: the import does, and hears an interrupt.
    let (descriptor, status) = try PathText.naming(name) {
      let descriptor = try files.openNamed(path, [.readOnly, .nonBlocking])
      return (descriptor, try descriptor.status())
    }
    switch status.kind {
    case .directory:
      guard recursive else { throw Failure.usage("\(path): it is a folder; use -r") }
      try requireOutside(target, status, path)
      try storeFolder(descriptor, status, named: name, at: target)
    default: try store(descriptor, status, named: name, at: target)
    }
  }

  /// A folder that is seen in a mount of the vault has no end where it is to be stored in itself.
  private func requireOutside(_ target: VaultPath, _ status: FileStatus, _ path: String) throws {
    guard own.isMounted(status) else { return }
    for count in 0..<target.names.count {
      guard try container.attributes(at: target.prefix(count)).number.value != status.inode else {
        throw Failure.usage("\(path): a folder cannot be stored in itself")
      }
    }
  }

  private func storeFolder(
    _ folder: OwnedDescriptor, _ status: FileStatus, named name: [UInt8], at target: VaultPath
  ) throws {
    let isNew = try make(target, permissions: status.permissions)
    do {
      try storeEntries(of: folder, status, named: name, at: target)
    } catch let error as ContainerError where error.category == .cancelled && isNew {
      // An interrupted put leaves nothing.
      try container.removeRecursively(target)
      throw error
    }
  }

  private func storeEntries(
    of folder: OwnedDescriptor, _ status: FileStatus, named folderName: [UInt8], at target: VaultPath
  ) throws {
    for name in try PathText.naming(folderName, { try files.names(in: folder) }) {
      let source = PathText.joined(folderName, name)
      let path = try PathText.naming(source) { try target.appending(name) }
      guard let found = try PathText.naming(source, { try files.status(of: name, in: folder) }) else { continue }
      switch found.kind {
      case .directory:
        let inner = try PathText.naming(source) { try files.open(name, [.directory, .noFollow], in: folder) }
        // Asked of what is open: it is what is read.
        let opened = try inner.status()
        if let reason = own.reason(toPassOver: opened, in: status) {
          tally.skip(source, because: reason)
          continue
        }
        _ = try make(path, permissions: opened.permissions)
        try storeEntries(of: inner, opened, named: source, at: path)
      case .file:
        let (file, opened) = try PathText.naming(source) {
          let file = try files.open(name, [.readOnly, .noFollow, .nonBlocking], in: folder)
          return (file, try file.status())
        }
        try store(file, opened, named: source, at: path)
      case .symbolicLink:
        try PathText.naming(path) {
          try container.makeSymbolicLink(at: path, to: files.readLink(name, in: folder), replacing: true)
        }
        tally.links += 1
      case .other: tally.skip(source, because: "only files, folders and symbolic links can be")
      }
    }
  }

  /// Makes a folder; `false` where it is there.
  private func make(_ path: VaultPath, permissions: UInt16) throws -> Bool {
    try PathText.naming(path) {
      do {
        try container.makeDirectory(at: path, permissions: permissions)
        tally.folders += 1
        return true
      } catch let error as ContainerError where error.category == .cannotCreate {
        guard try container.attributes(at: path).kind == .directory else { throw error }
        return false
      }
    }
  }

  private func store(
    _ file: OwnedDescriptor, _ status: FileStatus, named name: [UInt8], at path: VaultPath
  ) throws {
    // A fifo or a device named by a person is read as a stream.
    let byteCount = status.kind == .file ? status.byteCount : nil
    let source = ImportSource(
      descriptor: file, byteCount: byteCount, permissions: status.permissions,
      modified: status.kind == .file ? status.modified : nil)
    try transfer(source, named: name, to: path)
  }

  private func transfer(_ source: ImportSource, named name: [UInt8], to path: VaultPath) throws {
    let transfer = Transfer(total: source.byteCount, stream: source.byteCount == nil ? source.descriptor : nil)
    defer { transfer.end() }
    do {
      let stored =
        try isDeposit
        ? container.deposit(source, to: path, control: transfer.control)
        : container.importFile(source, to: path, replacing: true, control: transfer.control)
      tally.files += 1
      tally.bytes += stored.byteCount
    } catch {
      // What cannot be read is the source's fault, anything else has to do with the place in the vault.
      let isOfSource = (error as? ContainerError)?.category == .inputOutput
      try PathText.naming(isOfSource ? name : path.bytes) { throw error }
    }
  }
}
