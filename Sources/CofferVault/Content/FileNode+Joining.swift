internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// Joining: what was written becomes part of the index, as one state of the file. The next commit makes it durable.
extension FileNode {
  /// Joins what has not joined. Readers do not wait for it, and writers not for the disk, but where they write faster than it
  /// syncs.
  func join() throws {
    guard hasChanges.load(ordering: .acquiring) else { return }
    try syncAhead()
    try whileJoining { try joinWhileWriting() }
  }

  /// Runs `body` under `writing`, where there is something to join.
  private func whileJoining(_ body: () throws -> Void) throws {
    try writing.withLock { _ in
      // Another thread may have joined it meanwhile. Then its last user may be gone, and the file may have been opened and
      // changed through a node of its own, whose record must not be replaced by this one's.
      guard hasChanges.load(ordering: .acquiring) else { return }
      if overlay.withLock({ $0.isBroken }) { throw VaultError.needsReopening }
      do {
        try body()
      } catch {
        // A failed sync has been remembered, and broke the file.
        if !overlay.withLock({ $0.isBroken }) { record(error, isBreaking: false) }
        throw error
      }
    }
  }

  /// Syncs the object while writers go on; again where they have written much meanwhile, as long as that helps.
  private func syncAhead() throws {
    for _ in 0..<Self.roundsAhead {
      var found: (object: ContentObject, placed: UInt64)?
      try whileJoining {
        guard !vault.files.isClosed else { throw VaultError.badHandle }
        try placeContent()
        guard needsSync, let object else { return }
        found = (object, placedByteCount)
        object.syncsAhead.begin()
      }
      guard let (object, placed) = found else { return }
      do {
        defer { object.syncsAhead.end() }
        try sync(object)
      }
      let isEnough = writing.withLock { _ in
        if self.object === object, placedByteCount == placed { needsSync = false }
        return placedByteCount - placed <= Self.bytesBehind
      }
      if isEnough { return }
    }
  }

  private static let roundsAhead = 4
  /// So much writers may wait for, at the end.
  private static let bytesBehind: UInt64 = 1 << 20

  /// Brings what waits in memory to its place in the object. Under `writing`.
  private func placeContent() throws {
    // Nothing would remove an object that it gets now.
    if isGone.load(ordering: .acquiring) { return }
    // Sealed when a lock found no room for its object.
    if sealedPlain != nil, byteCount > UInt64(VaultFormat.inlineLimit) { _ = try presentCipher() }
    if object == nil, plain.count > VaultFormat.inlineLimit { try moveToObject(sized: UInt64(plain.count)) }
    try flush()
  }

  /// Under `writing`.
  func joinWhileWriting() throws {
    guard !vault.files.isClosed else { throw VaultError.badHandle }
    // Nothing would remove an object that it gets now.
    if isGone.load(ordering: .acquiring) { return }
    try placeContent()
    if let object, needsSync {
      try sync(object)
      needsSync = false
    }
    object?.syncsAhead.waitForEnd()
    if overlay.withLock({ $0.isBroken }) { throw VaultError.needsReopening }
    // Behind it, for who takes the file apart says so before.
    if let object, try object.isNameless, !isGone.load(ordering: .acquiring) {
      throw VaultError.damaged(what: "an object was removed while the vault was open")
    }
    let content = try contentToStore()
    let dirty = state.withLock { _ in
      dirtyPageCount == 0 ? [] : pages.values.filter(\.isDirty).sorted { $0.index < $1.index }
    }
    // Writers alone change dirty pages.
    let filled = dirty.filter { !$0.isEmpty }
    let emptied = dirty.filter { $0.isEmpty && $0.hasRow }
    // Not what takes files apart: that waits for writers, of which this is one.
    let joined = try vault.perform { session -> UInt64? in
      // Its last name and its last handle are gone.
      if self.isGone.load(ordering: .acquiring) { return nil }
      try session.store(
        filled.lazy.map { $0.stored(inode: self.number) }, removing: emptied.map(\.index), of: self.number)
      try self.storeInode(content, session)
      return session.nextGeneration
    }
    // Whoever removes the file asks which objects it has.
    guard let generation = joined else { return }
    state.withLock { _ in
      for page in dirty {
        page.isDirty = false
        page.fresh = 0
        page.hasRow = !page.isEmpty
      }
      dirtyPageCount = 0
      joinCount += 1
      lastJoinGeneration = generation
      slots.didJoin(generation: generation)
      joinedSlotCount = slots.used
    }
    // Another thread may have committed since.
    let durable = vault.files.committedGeneration
    if generation <= durable { didCommit(generation: durable) }
    objectIsMarked = false
    retired = []
    let stored = storedByteCount
    overlay.withLock { overlay in
      overlay.storedByteCount = stored
      overlay.isFailing = false
      overlay.modified = nil
      overlay.changed = nil
    }
    hasChanges.store(false, ordering: .releasing)
  }

  /// After a sync that failed, nobody knows which bytes are on the disk, and a second one would not tell: the file takes
  /// no more changes.
  private func sync(_ object: ContentObject) throws {
    do {
      try object.file.syncData()
    } catch {
      record(error, isBreaking: true)
      throw error
    }
  }

  private func contentToStore() throws -> Inode.Content {
    if let object { return .object(object.reference, state.withLock { _ in slots.use }) }
    if let sealedPlain {
      // What is too long for a record needs the key to be cut into blocks.
      guard byteCount <= UInt64(VaultFormat.inlineLimit) else { throw VaultError.locked }
      return .inline(sealedPlain)
    }
    return .inline(try presentCipher().sealInline(plain.bytes))
  }

  private func storeInode(_ content: Inode.Content, _ session: IndexSession) throws {
    var inode = try session.inode(number)
    inode.byteCount = byteCount
    inode.revision = revision
    inode.content = content
    if inode.rekeying != nil { inode.rekeying = state.withLock { _ in protectedKey.rekeying } }
    overlay.withLock { overlay in
      if let modified = overlay.modified { inode.modified = modified }
      if let changed = overlay.changed { inode.changed = max(changed, inode.changed) }
    }
    try session.store(inode)
    if objectIsMarked, let object { try session.removePending(PendingRemoval(object: object.reference).mark) }
    for object in retired {
      let removal = PendingRemoval(object: object.reference)
      if !object.isMarked { try session.addPending(removal) }
      session.removeObjectAfterCommit(removal)
    }
    let generation = session.nextGeneration
    session.afterOperation { self.vault.files.didJoin(self.number, generation: generation) }
  }

  // MARK: Space

  /// A commit is durable: what waited for it is free, and what nobody will use goes back to the disk.
  func didCommit(generation: UInt64) {
    let (overflow, file) = state.withLock { _ in (slots.didCommit(generation: generation), object) }
    guard let file else { return }
    for range in overflow { giveBack(range, of: file) }
  }

  /// Gives all free slots back to the disk: punches them, and cuts the object where they end it.
  func giveBackFreeSlots() {
    // A thread that changes the file uses them itself.
    _ = writing.withLockIfAvailable { _ in
      let (ranges, object) = state.withLock { _ in (slots.takeAllFree(), self.object) }
      guard let object, !vault.isReadOnly else { return }
      for range in ranges {
        if state.withLock({ _ in slots.lowerReach(by: range) }) {
          try? object.file.truncate(to: range.lowerBound << object.exponent)
        } else {
          giveBack(range, of: object)
        }
      }
    }
  }

  private func giveBack(_ range: Range<UInt64>, of object: ContentObject) {
    // What fails here costs space, not content; the slots are found again when the file is next written.
    _ = try? object.file.punchHole(
      at: range.lowerBound << object.exponent, count: UInt64(range.count) << object.exponent)
  }

  /// Something stays to be done when no handle is left: a join that failed, or slots that wait for a commit.
  var isUnfinished: Bool {
    hasChanges.load(ordering: .acquiring) || state.withLock { _ in slots.isWaiting }
  }

  /// Nor is there free space to give back: so it is where nobody has written since the file was opened.
  var isSettled: Bool {
    !hasChanges.load(ordering: .acquiring) && state.withLock { _ in !slots.isWaiting && !slots.hasFree }
  }
}
