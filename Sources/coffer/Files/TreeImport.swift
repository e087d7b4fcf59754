internal import CofferContainer
internal import CofferFiles
internal import CofferSystem

/// Stores files and folders of the system in a container.
final class TreeImport {
  private let container: Container
  private let isDeposit: Bool
  private let files = FileSystem()
  /// Fifos, devices and the like that were passed over.
  private(set) var skipped = 0

  /// - Parameter isDeposit: files are stored also while the vault is locked, and replace nothing.
  init(container: Container, isDeposit: Bool = false) {
    self.container = container
    self.isDeposit = isDeposit
  }

  func storeStandardInput(at path: VaultPath) throws {
    let source = ImportSource(
      descriptor: Session.present.input, byteCount: nil, permissions: 0o600, modified: nil)
    try transfer(source, to: path)
  }

  func store(_ path: String, at target: VaultPath, recursive: Bool) throws {
    // A link that a person names is followed, as the familiar tools do.
    // Not waiting for a fifo's writer here: the import does, and hears an interrupt.
    let descriptor = try files.openNamed(path, [.readOnly, .nonBlocking])
    let status = try descriptor.status()
    switch status.kind {
    case .directory:
      guard recursive else { throw Failure.usage("\(path): it is a folder; use -r") }
      try storeFolder(descriptor, status, at: target)
    default: try store(descriptor, status, at: target)
    }
  }

  private func storeFolder(_ folder: OwnedDescriptor, _ status: FileStatus, at target: VaultPath) throws {
    let isNew = try make(target, permissions: status.permissions)
    do {
      try storeEntries(of: folder, at: target)
    } catch let error as ContainerError where error.category == .cancelled && isNew {
      // An interrupted put leaves nothing.
      try container.removeRecursively(target)
      throw error
    }
  }

  private func storeEntries(of folder: OwnedDescriptor, at target: VaultPath) throws {
    for name in try files.names(in: folder) {
      let path = try target.appending(name)
      guard let status = try files.status(of: name, in: folder) else { continue }
      switch status.kind {
      case .directory:
        _ = try make(path, permissions: status.permissions)
        try storeEntries(of: files.open(name, [.directory, .noFollow], in: folder), at: path)
      case .file:
        let file = try files.open(name, [.readOnly, .noFollow, .nonBlocking], in: folder)
        try store(file, file.status(), at: path)
      case .symbolicLink:
        try container.makeSymbolicLink(at: path, to: files.readLink(name, in: folder), replacing: true)
      case .other: skipped += 1
      }
    }
  }

  /// Makes a folder; `false` where it is there.
  private func make(_ path: VaultPath, permissions: UInt16) throws -> Bool {
    do {
      try container.makeDirectory(at: path, permissions: permissions)
      return true
    } catch let error as ContainerError where error.category == .cannotCreate {
      guard try container.attributes(at: path).kind == .directory else { throw error }
      return false
    }
  }

  private func store(_ file: OwnedDescriptor, _ status: FileStatus, at path: VaultPath) throws {
    // A fifo or a device named by a person is read as a stream.
    let byteCount = status.kind == .file ? status.byteCount : nil
    let source = ImportSource(
      descriptor: file, byteCount: byteCount, permissions: status.permissions,
      modified: status.kind == .file ? status.modified : nil)
    try transfer(source, to: path)
  }

  private func transfer(_ source: ImportSource, to path: VaultPath) throws {
    let transfer = Transfer(total: source.byteCount, stream: source.byteCount == nil ? source.descriptor : nil)
    defer { transfer.end() }
    if isDeposit {
      try container.deposit(source, to: path, control: transfer.control)
    } else {
      try container.importFile(source, to: path, replacing: true, control: transfer.control)
    }
  }
}
