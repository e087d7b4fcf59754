internal import CofferCrypto
public import CofferKeys
public import CofferSystem

/// What is left of a vault that was wiped.
public struct WipeReport: Sendable, Hashable {
  public enum Keys: Sendable, Hashable {
    /// They were in the key store, and are destroyed.
    case destroyed
    /// An earlier wipe had begun to destroy them; what was left of them went now.
    case destroyedBefore
    /// The key store had none, and the folder nothing that a key opens: the end of an earlier wipe.
    case absent
  }

  public let keys: Keys
  /// A copy of the vault that was made before can be opened with its recovery key; nil where nothing is left that says.
  public let hadRecoveryKey: Bool?
  /// A copy of the vault that was made before can be opened with the company's escrow key; nil where nothing is left that says.
  public let hadEscrowKey: Bool?
  /// The process that has the vault open, or 0 where it is not known; nil where nobody had, and everything is gone.
  ///
  /// It holds the unlocked keys until it ends, and no other process can get them. The ciphertext goes when the wipe is
  /// called again.
  public let holder: Int32?
}

/// What a wipe may destroy.
public enum WipeScope: Sendable, Hashable {
  /// The vault of this device, where the folder is known to be it. Its copies open with no passcode afterwards.
  case vault
  /// The keys by the folder's id, and so those of every copy, whatever the folder is.
  case everyCopy
  /// What a wipe has left whose keys are known to have gone: a folder without a keybag, of which the key store has no secret, or only
  /// beside the mark of a wipe. So nothing that was recovered since, and no backup.
  case remains
}

extension Vault {
  /// Destroys a vault; needs no passcode. The keys go first, within milliseconds at any size: the device secret and the
  /// rotation, then the keybag, each overwritten before its name goes, where the disk has room for that. Then the rest
  /// follows.
  ///
  /// A folder says itself which vault it is, and every copy says the same. So the keys are touched only where the folder's
  /// keybag is authentic for this device, and the folder is where the key store last saw the vault, or was moved from
  /// there; or where an earlier wipe was cut. For anything else there is `scope`.
  ///
  /// Where a crash cuts it, or another process has the vault open, it can be called again. It is final also for somebody
  /// who knows the passcode; what may open a copy that was made before is in the report.
  ///
  /// - Parameters:
  ///   - expected: the vault that is meant, whatever the folder says; nil takes its word.
  ///   - keysDestroyed: called when nothing that is stored opens the vault any more, before the rest goes. Not where there was nothing
  ///     that says so.
  /// Throws `noVault`, also where the folder is another vault's than the expected, `notAVault`, `maybeCopy`, `foreignKeybag` and
  /// `nothingToWipe` with everything as it was; and the system's errors, where the keys may be destroyed.
  public static func wipe(
    at path: String, keyStore: any KeyStore, scope: WipeScope = .vault, expecting expected: VaultID? = nil,
    files: FileSystem = FileSystem(), keysDestroyed: () -> Void = {}
  ) throws(VaultError) -> WipeReport {
    try VaultError.catching {
      let folder = try VaultFolder(opening: path, files: files)
      guard let bytes = try folder.contents(of: VaultFormat.description) else {
        return try finishWiping(folder)
      }
      let wipe = Wipe(folder: folder, keyStore: keyStore, description: try VaultDescription(parsing: bytes))
      if let expected, wipe.description.id != expected { throw VaultError.noVault }
      let (keys, mark) = try wipe.destroyKeys(scope)
      if keys != .absent { keysDestroyed() }
      func report(holder: Int32?) -> WipeReport {
        WipeReport(
          keys: keys, hadRecoveryKey: mark.hadRecoveryKey, hadEscrowKey: mark.hadEscrowKey, holder: holder)
      }
      let lock: OwnedDescriptor
      do {
        lock = try folder.takeLock()
      } catch VaultError.inUse(let holder) {
        return report(holder: holder ?? 0)
      }
      defer { lock.unlock() }
      try wipe.removeRest()
      try removeFolder(folder)
      return report(holder: nil)
    }
  }

  /// Destroys the keys of this vault and of every copy by its id, wherever its folder is by now: another vault may lie at its place.
  /// ``wipe(at:keyStore:scope:expecting:files:keysDestroyed:)`` removes the rest once nobody has it open.
  ///
  /// Throws `nothingToWipe` where the key store has none, and nothing says that they were destroyed.
  public func destroyKeys() throws(VaultError) {
    try VaultError.catching {
      let wipe = Wipe(folder: folder, keyStore: keyStore, description: VaultDescription(id: id))
      guard try wipe.destroyKeys(.everyCopy).0 != .absent else { throw VaultError.nothingToWipe }
    }
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
    return WipeReport(keys: .absent, hadRecoveryKey: nil, hadEscrowKey: nil, holder: nil)
  }
}

/// The steps of a wipe.
private struct Wipe {
  let folder: VaultFolder
  let keyStore: any KeyStore
  let description: VaultDescription
  private var id: VaultID { description.id }

  /// Everything but the headers: what is left of it without them is no vault's any more.
  private static let ciphertext = [
    VaultFormat.index, VaultFormat.indexLog, VaultFormat.index + "-journal", VaultFormat.journal,
    VaultFormat.ballast,
  ]

  /// Before anything else: who holds the vault, or what is damaged in it, must not keep its keys.
  func destroyKeys(_ scope: WipeScope) throws -> (WipeReport.Keys, WipeMark) {
    func run() throws -> (WipeReport.Keys, WipeMark) {
      let keys = try judge(scope)
      let mark = WipeMark(of: try? KeyDestruction.keybag(in: folder), in: keyStore, for: id)
      if keys != .absent { try KeyDestruction(folder: folder, keyStore: keyStore, vault: id).run() }
      return (keys, mark)
    }
    do {
      return try keyStore.withLock(of: id, run)
    } catch KeyStoreError.nothingKept {
      return try run()
    }
  }

  private func judge(_ scope: WipeScope) throws -> WipeReport.Keys {
    if scope == .remains, try !KeyDestruction.isKeybagDestroyed(in: folder) { throw VaultError.nothingToWipe }
    // One that makes no sense says of no folder that it is to go.
    if try scope != .vault ? keyStore.keeps(.wiped, of: id) : WipeMark(in: keyStore, for: id) != nil {
      return .destroyedBefore
    }
    guard try keyStore.keeps(.deviceSecret, of: id) else {
      // Of a wipe that was cut and could leave no mark: where nothing can open this folder any more, or that is what was asked for.
      // With an anchor nobody can say: whoever has the vault open writes that and the place anew where somebody has taken the key store
      // away, and the keys are there.
      if let place = try FolderPlace(in: keyStore, for: id), try place.isOf(folder, id),
        try KeyDestruction.isKeybagDestroyed(in: folder) || (scope == .everyCopy && !keyStore.keeps(.anchor, of: id))
      {
        return .destroyedBefore
      }
      // Another key store may open what is here. Without keybag and ciphertext nothing does.
      guard try isEmptied() else { throw VaultError.nothingToWipe }
      return .absent
    }
    switch scope {
    case .vault: break
    case .everyCopy: return .destroyed
    case .remains: throw VaultError.nothingToWipe
    }
    guard let secret = try keyStore.read(.deviceSecret, of: id),
      let device = try? DeviceKeys(secret: secret, vault: id),
      let keybag = try KeyDestruction.keybag(in: folder), keybag.isAuthentic(description, on: device)
    else {
      // An earlier wipe may have destroyed it, and not the key store's half.
      if try KeyDestruction.isKeybagDestroyed(in: folder),
        try FolderPlace(in: keyStore, for: id) == FolderPlace(of: folder)
      {
        return .destroyed
      }
      throw VaultError.foreignKeybag
    }
    guard let place = try FolderPlace(in: keyStore, for: id), try place.isOf(folder, id) else {
      throw VaultError.maybeCopy
    }
    return .destroyed
  }

  private func isEmptied() throws -> Bool {
    for name in Self.ciphertext + [VaultFormat.keybag, VaultFormat.objects] {
      guard try folder.files.status(of: name, in: folder.descriptor) == nil else { return false }
    }
    return true
  }

  /// The description goes last but for the lock, and before it the mark in the key store: until then the vault is known as
  /// one that is being wiped. Under the vault's lock.
  func removeRest() throws {
    let files = folder.files
    for name in Self.ciphertext + [VaultFormat.objects] {
      // Whatever it is: somebody may have put a folder in a file's place.
      try files.removeAny(name, in: folder.descriptor)
    }
    try folder.descriptor.sync()
    // With what a holder that has ended may have written once more; not what somebody has recovered since.
    do {
      try keyStore.withLock(of: id) {
        guard try keyStore.keeps(.wiped, of: id) || !keyStore.keeps(.deviceSecret, of: id) else { return }
        try keyStore.removeAll(of: id)
      }
    } catch KeyStoreError.nothingKept {}
    try files.unlink(VaultFormat.description, in: folder.descriptor)
  }
}
