internal import CofferKeys
internal import CofferSystem

/// Where a vault's folder lies, as the key store remembers it.
///
/// A copy has the vault's id, and its keys are the vault's, so that only this tells one from the other. It follows the
/// anchor: the vault is where it was changed last, and who looks into a copy does not move it there.
struct FolderPlace: Equatable {
  let device: UInt64
  let inode: UInt64
  /// Without symbolic links.
  let path: [UInt8]

  init(of folder: VaultFolder) throws {
    let status = try folder.descriptor.status()
    (device, inode) = (status.device, status.inode)
    path = try folder.files.resolvedPath(of: folder.path)
  }

  /// Nil where nothing is kept, or nothing that makes sense.
  init?(in keyStore: any KeyStore, for vault: VaultID) throws {
    let kept = Result { () throws(KeyStoreError) in try keyStore.read(.place, of: vault) }
    if case .failure(.damaged) = kept { return nil }
    guard let bytes = try kept.get()?.withUnsafeBytes({ Array($0) }) else { return nil }
    var reader = ByteReader(bytes)
    guard bytes.count > 17, (try? reader.read(UInt8.self)) == 0, let device: UInt64 = try? reader.read(),
      let inode: UInt64 = try? reader.read()
    else { return nil }
    (self.device, self.inode, path) = (device, inode, Array(bytes.dropFirst(17)))
  }

  /// Keeps it, unless it is there already.
  func store(in keyStore: any KeyStore, for vault: VaultID) throws {
    if try FolderPlace(in: keyStore, for: vault) == self { return }
    var writer = ByteWriter()
    writer.write(UInt8(0))
    writer.write(device)
    writer.write(inode)
    writer.write(fixed: path)
    try keyStore.write(writer.bytes.withUnsafeBytes { SecretBytes(copying: $0) }, as: .place, of: vault)
  }

  /// Whether `folder` is what lies there, or was moved from there, for all that can be seen now.
  func isOf(_ folder: VaultFolder, _ vault: VaultID) throws -> Bool {
    let status = try folder.descriptor.status()
    // Also where it was moved while it was open.
    if (status.device, status.inode) == (device, inode) { return true }
    let here = try FolderPlace(of: folder)
    if here.path == path { return true }
    // Moved within a file system it would be the same folder. And what nobody has ever opened is a backup.
    guard here.device != device, try folder.files.status(of: VaultFormat.lock, in: folder.descriptor) != nil else {
      return false
    }
    // From another one: that must be there, and the vault must not.
    guard let path = String(validating: path, as: UTF8.self), let slash = path.lastIndex(of: "/"),
      try folder.files.status(of: String(path[...slash]))?.device == device
    else { return false }
    return try !hasVault(vault, folder.files)
  }

  /// Whether a folder of this id still lies there.
  func hasVault(_ vault: VaultID, _ files: FileSystem) throws -> Bool {
    guard let path = String(validating: path, as: UTF8.self), try files.status(of: path)?.kind == .directory,
      let bytes = try VaultFolder(opening: path, files: files).contents(of: VaultFormat.description)
    else { return false }
    return try VaultDescription(parsing: bytes).id == vault
  }
}
