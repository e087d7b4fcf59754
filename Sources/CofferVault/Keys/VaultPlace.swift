internal import CofferKeys
internal import CofferSystem

/// A vault's folder that this process has to itself, and that nothing was unlocked in yet.
struct VaultPlace {
  let locked: LockedVault
  let lock: OwnedDescriptor

  /// - Parameter scheduler: the vault's, which must be ready before a passcode is tried, and before keys are replaced.
  /// Throws `noVault`, `notAVault`, `newerFormat`, `readOnlyDisk`, `inUse`, and what the scheduler does.
  init(
    at path: String, files: FileSystem, keyStore: any KeyStore, time: any TimeSource, scheduler: any Scheduler
  ) throws {
    locked = try LockedVault(in: VaultFolder(opening: path, files: files), keyStore: keyStore, time: time)
    do {
      lock = try locked.folder.takeLock()
    } catch let error as SystemError where error.isReadOnlyDisk {
      throw VaultError.readOnlyDisk
    }
    try scheduler.requireReady()
  }

  func requireIndex() throws {
    guard try locked.folder.files.status(of: VaultFormat.index, in: locked.folder.descriptor) != nil else {
      throw VaultError.damaged(what: VaultFormat.index)
    }
  }

  func vault(_ opened: LockedVault.Opened, options: VaultOptions) throws -> Vault {
    try requireIndex()
    return try Vault(
      opening: locked.folder, description: locked.description, keybag: opened.bytes, keys: opened.keys,
      keyStore: locked.keyStore, lock: lock, time: locked.time, options: options)
  }
}
