internal import CofferCrypto
public import CofferKeys
public import CofferSystem

/// What is left of a vault that was wiped.
public struct WipeReport: Sendable, Hashable {
  /// A copy of the vault that was made before can be opened with its recovery key.
  public let hadRecoveryKey: Bool
  /// A copy of the vault that was made before can be opened with the company's escrow key.
  public let hadEscrowKey: Bool
  /// The process that has the vault open, or 0 where it is not known; nil where nobody had, and everything is gone.
  ///
  /// It holds the unlocked keys until it ends, and no other process can get them. The ciphertext goes when the wipe is
  /// called again.
  public let holder: Int32?
}

extension Vault {
  /// Destroys a vault; needs no passcode. The keys go first, within milliseconds at any size: the device secret and the
  /// rotation, then the keybag, each overwritten before its name goes. Then the rest follows.
  ///
  /// Where a crash cuts it, or another process has the vault open, it can be called again. It is final also for somebody
  /// who knows the passcode; what may open a copy that was made before is in the report.
  ///
  /// - Parameter keysDestroyed: called when nothing that is stored opens the vault any more.
  /// Throws `noVault` and `notAVault`, and the system's errors; the keys may be destroyed then.
  public static func wipe(
    at path: String, keyStore: any KeyStore, files: FileSystem = FileSystem(), keysDestroyed: () -> Void = {}
  ) throws(VaultError) -> WipeReport {
    try VaultError.catching {
      let folder = try VaultFolder(opening: path, files: files)
      guard let bytes = try folder.contents(of: VaultFormat.description) else {
        return try finishWiping(folder)
      }
      let id = try VaultDescription(parsing: bytes).id
      let summary = try? folder.contents(of: VaultFormat.keybag).map { KeybagSummary(try Keybag(parsing: $0)) }
      // Before anything else: who holds the vault, or what is damaged in it, must not keep its keys.
      try KeyDestruction(folder: folder, keyStore: keyStore, vault: id).run()
      keysDestroyed()
      func report(holder: Int32?) -> WipeReport {
        WipeReport(
          hadRecoveryKey: summary?.hasRecoveryKey ?? false, hadEscrowKey: summary?.escrowKey != nil, holder: holder)
      }
      let lock: OwnedDescriptor
      do {
        lock = try folder.takeLock()
      } catch VaultError.inUse(let holder) {
        return report(holder: holder ?? 0)
      }
      defer { lock.unlock() }
      // The holder that has ended may have written its anchor once more.
      try keyStore.removeAll(of: id)
      try removeRest(of: folder)
      return report(holder: nil)
    }
  }

  /// Everything but the headers: what is left of it without them is no vault's any more.
  private static let ciphertext = [
    VaultFormat.index, VaultFormat.index + "-wal", VaultFormat.index + "-journal", VaultFormat.ballast,
  ]

  /// The description goes last but for the lock: until then the vault is known as one that is being wiped.
  private static func removeRest(of folder: VaultFolder) throws {
    let files = folder.files
    if try files.status(of: VaultFormat.objects, in: folder.descriptor) != nil {
      try files.removeTree(VaultFormat.objects, in: folder.descriptor)
    }
    for name in ciphertext { try files.unlink(name, in: folder.descriptor) }
    try folder.descriptor.sync()
    try files.unlink(VaultFormat.description, in: folder.descriptor)
    try removeFolder(folder)
  }

  private static func removeFolder(_ folder: VaultFolder) throws {
    try folder.files.unlink(VaultFormat.lock, in: folder.descriptor)
    try folder.descriptor.sync()
    // What somebody else put there stays, and the folder with it.
    _ = try? folder.files.removeDirectory(folder.path)
  }

  /// Ends a wipe that was cut when the lock alone was left.
  private static func finishWiping(_ folder: VaultFolder) throws -> WipeReport {
    guard try folder.files.names(in: folder.descriptor) == [Array(VaultFormat.lock.utf8)] else {
      throw VaultError.notAVault
    }
    let lock = try folder.takeLock()
    defer { lock.unlock() }
    try removeFolder(folder)
    return WipeReport(hadRecoveryKey: false, hadEscrowKey: false, holder: nil)
  }
}
