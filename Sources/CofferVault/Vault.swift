internal import CofferCrypto
internal import CofferFiles
public import CofferKeys
internal import CofferSystem
internal import Synchronization

/// An open vault: an encrypted file system in a folder.
///
/// Synchronous at its core and safe from many threads. Changes are durable when ``commit()`` or ``close()`` returns; a
/// crash before that leaves the state of an earlier commit, never a mixture.
public final class Vault: Sendable {
  public let id: VaultID
  /// The vault is older than what this device has seen of it: it can be read, and every change is refused.
  public let isReadOnly: Bool

  let index: Index
  let objects: ObjectStore
  let keys: UnlockedKeys
  let time: any TimeSource
  private let anchor: AnchorKeeper
  private let ballast: Ballast
  private let timer: CommitTimer
  private let lock: OwnedDescriptor
  private let state = Mutex(State())

  private struct State {
    var pins: [InodeNumber: Int] = [:]
    /// Unlinked while somebody reads them; removed when the last reader is done.
    var pinnedRemovals: [InodeNumber: PendingRemoval] = [:]
    var isClosed = false
  }

  init(
    opening folder: VaultFolder, description: VaultDescription, keybag: [UInt8], keys: UnlockedKeys,
    keyStore: any KeyStore, lock: OwnedDescriptor, time: any TimeSource, options: VaultOptions
  ) throws {
    id = description.id
    self.keys = keys
    self.lock = lock
    self.time = time
    index = try Index(at: folder.path + "/" + VaultFormat.index, keys: keys, vault: description.id)
    objects = try ObjectStore(
      files: folder.files, vaultFolder: folder.descriptor, rowKeys: RowKeys(metadataKey: keys.metadata))
    ballast = Ballast(files: folder.files, vaultFolder: folder.descriptor)
    timer = CommitTimer(options.scheduler)
    let found = try keyStore.read(.anchor, of: description.id).flatMap { bytes in
      try? Anchor(decoding: bytes.withUnsafeBytes { Array($0) })
    }
    let keybagDigest = Digest.sha256(keybag)
    anchor = AnchorKeeper(
      keyStore, vault: id, keybagDigest: keybagDigest, isBound: found?.isBound, time: time)
    let isCurrent = Vault.isCurrent(index.read { $0.committed }, keybagDigest: keybagDigest, anchor: found)
    isReadOnly = !isCurrent && !options.acceptsOlderState
    if isReadOnly { return }
    ballast.restore()
    if !isCurrent {
      // From now on this is the vault, and what the device saw before is not.
      index.read { $0.beginBranch(above: found?.generation ?? 0) }
      try commit()
      try anchor.flush()
    }
    try recover()
  }

  // MARK: Commit

  /// Makes every change so far durable: objects' bytes (synced as they were written), their names, the index, and then
  /// the anchor in the key store.
  public func commit() throws(VaultError) {
    try VaultError.catching {
      let removals = try commitIndex()
      guard !removals.isEmpty else { return }
      for removal in removals { if let object = removal.object { try objects.remove(object.number) } }
      // The marks go with the next commit: a crash before it removes the objects once more, which does nothing.
      try index.perform { session in for removal in removals { try session.removePending(removal.inode) } }
    }
  }

  /// Returns what the commit removed, and whose objects can go now.
  private func commitIndex() throws -> [PendingRemoval] {
    guard let (root, removals) = try commitOnDiskThatMayBeFull() else { return [] }
    try anchor.follow(root)
    return removals
  }

  private func commitOnDiskThatMayBeFull() throws -> (root: CommittedRoot, removals: [PendingRemoval])? {
    do {
      return try index.commit(prepare: { try objects.syncFolders() })
    } catch {
      // What was to be committed is still there, so that it can be tried again with more room.
      guard VaultError.wrapping(error) == .full, ballast.release() else { throw error }
      return try index.commit(prepare: { try objects.syncFolders() })
    }
  }

  /// Whether the key store says that the vault belongs to somebody beside its owner; nil where the key store's word is
  /// missing, and the vault can then only be read.
  public var isBound: Bool? { anchor.isBound }

  /// Remembers in the key store, beside the vault's newest state, that the vault belongs to somebody beside its owner.
  /// Nothing takes it back.
  public func bind() throws(VaultError) {
    try VaultError.catching {
      guard !isReadOnly else { throw VaultError.olderThanAnchor }
      try anchor.bind(index.read { $0.committed })
    }
  }

  /// Commits, and gives the vault back to others. Nothing can be done with it afterwards.
  public func close() throws(VaultError) {
    let wasClosed = state.withLock { state in
      defer { state.isClosed = true }
      return state.isClosed
    }
    if wasClosed { return }
    try VaultError.catching {
      defer {
        try? index.close()
        lock.unlock()
      }
      if !isReadOnly {
        try commit()
        _ = try commitIndex()
        try anchor.flush()
      }
    }
  }

  // MARK: Changing

  /// Runs one change of names or attributes: all of it or nothing. What it throws was not applied.
  func change<Result>(_ body: (IndexSession) throws -> Result) throws(VaultError) -> Result {
    guard !isReadOnly else { throw .olderThanAnchor }
    return try VaultError.catching {
      // Bounds what a crash undoes and what memory holds. Before the operation, not behind it: a commit that fails must
      // not look like an operation that failed.
      if index.read({ $0.isFull }) { try commit() }
      let result = try index.perform(body)
      timer.set { [weak self] in self?.commitInBackground() }
      return result
    }
  }

  /// A failure is found again by whoever commits next.
  private func commitInBackground() {
    if state.withLock({ $0.isClosed }) { return }
    try? commit()
    try? anchor.flush()
    ballast.restore()
  }

  func look<Result>(_ body: (IndexSession) throws -> Result) throws(VaultError) -> Result {
    try VaultError.catching { try index.read(body) }
  }

  // MARK: Removal of what no name leads to

  /// Takes apart an inode whose last name is gone; called within the operation that removed the name.
  func discard(_ inode: Inode, in session: IndexSession) throws {
    let removal = PendingRemoval(inode)
    if state.withLock({ $0.pins[inode.number] != nil }) {
      try session.addPending(removal)
      session.afterOperation { self.state.withLock { $0.pinnedRemovals[inode.number] = removal } }
    } else {
      if removal.object != nil { try session.addPending(removal) }
      try finish(removal, in: session)
    }
  }

  /// Keeps an inode's rows and object while a snapshot reads them.
  func pin(_ inode: InodeNumber) { state.withLock { $0.pins[inode, default: 0] += 1 } }

  func unpin(_ inode: InodeNumber) {
    let removal = state.withLock { state -> PendingRemoval? in
      let count = (state.pins[inode] ?? 1) - 1
      state.pins[inode] = count == 0 ? nil : count
      guard count == 0, !state.isClosed else { return nil }
      return state.pinnedRemovals.removeValue(forKey: inode)
    }
    // Where this fails, the mark in the index stays and the next opening removes the rest.
    if let removal { try? change { try self.finish(removal, in: $0) } }
  }

  private func finish(_ removal: PendingRemoval, in session: IndexSession) throws {
    try session.removeRows(of: removal)
    if removal.object == nil {
      try session.removePending(removal.inode)
    } else {
      session.removeObjectAfterCommit(removal)
    }
  }

  /// What a crash left: marked removals, and objects that no commit knows.
  private func recover() throws {
    let (pending, firstUnknown) = try index.read { (try $0.pendingRemovals(), $0.committedNextObject) }
    for number in firstUnknown..<(firstUnknown + VaultFormat.uncommittedObjects) { try objects.remove(number) }
    if pending.isEmpty { return }
    try index.perform { session in for removal in pending { try finish(removal, in: session) } }
    try commit()
  }

  private static func isCurrent(_ root: CommittedRoot, keybagDigest: [UInt8], anchor: Anchor?) -> Bool {
    // The secret is there and the anchor is not: someone took it away.
    guard let anchor, anchor.branch == root.branch, anchor.keybagDigest == keybagDigest else { return false }
    if root.generation == anchor.generation { return root.digest == anchor.rootDigest }
    return root.generation > anchor.generation
  }
}

extension Anchor {
  var secretBytes: SecretBytes { encoded().withUnsafeBytes { SecretBytes(copying: $0) } }
}
