public import CofferFiles
internal import CofferVault

/// Names and attributes: they ask nothing but an open vault.
extension Container {
  public func attributes(at path: VaultPath) throws -> FileAttributes {
    try ContainerError.catching { try vault.attributes(at: path) }
  }

  /// The entries of a folder, in no particular order.
  public func list(_ path: VaultPath) throws -> [DirectoryEntry] {
    try ContainerError.catching { try vault.list(path) }
  }

  /// Makes a folder; `withParents` also those above it, and an existing one is then no error.
  public func makeDirectory(at path: VaultPath, permissions: UInt16 = 0o700, withParents: Bool = false) throws {
    try ContainerError.catching {
      try vault.makeDirectory(at: path, permissions: permissions, withParents: withParents)
    }
  }

  /// Makes a symbolic link, in place of anything but a folder where `replacing`. It need not lead anywhere.
  public func makeSymbolicLink(at path: VaultPath, to target: [UInt8], replacing: Bool = false) throws {
    try ContainerError.catching { _ = try vault.makeSymbolicLink(at: path, to: target, replacing: replacing) }
  }

  /// What the symbolic link at `path` points with.
  public func readLink(at path: VaultPath) throws -> [UInt8] {
    try ContainerError.catching { try vault.readLink(at: path) }
  }

  /// Gives a file or folder another name, in place of a file or empty folder that has it where `replacing`.
  public func rename(_ old: VaultPath, to new: VaultPath, replacing: Bool = true) throws {
    try ContainerError.catching { try vault.rename(old, to: new, replacing: replacing) }
  }

  /// Removes a file or an empty folder.
  public func remove(_ path: VaultPath) throws { try ContainerError.catching { try vault.remove(path) } }

  /// Removes a file, or a folder with everything in it.
  public func removeRecursively(_ path: VaultPath, control: TransferControl = TransferControl()) throws {
    try ContainerError.catching { try vault.removeRecursively(path, control: control) }
  }

  /// Gives a file a protection class, or a folder the one that new files in it get. A stricter class seals a file's whole
  /// content anew, in constant memory; where that is interrupted, the next call goes on.
  public func protect(
    _ path: VaultPath, as protection: ProtectionClass, control: TransferControl = TransferControl()
  ) throws {
    try demandAllowed(protection)
    try ContainerError.catching { try vault.protect(path, as: protection, control: control) }
  }
}
