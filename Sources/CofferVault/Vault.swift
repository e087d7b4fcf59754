internal import CofferCrypto
internal import CofferFiles
public import CofferKeys
internal import CofferSystem
internal import Foundation
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
  let keys: KeyRing
  let scheduler: any Scheduler
  let observers = Observers()
  let changeObservers = ChangeObservers()
  let transitions = Transitions()
  let time: any TimeSource
  let files = FileRegistry()
  let folder: VaultFolder
  let keyStore: any KeyStore
  /// Held while a passcode is tried.
  let tries = NSLock()
  private let anchor: AnchorKeeper
  let ballast: Ballast
  let room: DiskRoom
  private let timer: CommitTimer
  let commits = CommitQueue()
  let roomGivenBack = RoomGivenBack()
  /// A thread deletes what a commit has removed, for which nobody waits.
  private let isDeletingBeside = Atomic(false)
  private let lock: OwnedDescriptor
  /// The raw value of the weakest class that new files get.
  let weakestNewClass = Atomic(ProtectionClass.none.rawValue)
  private let state = Mutex(State())

  private struct State {
    var isClosed = false
    /// Generations that somebody copies: what they refer to stays.
    var holds: [UInt64] = []
    /// Removed by commits, and not deleted yet: something holds an older one, or the deletion failed.
    var removals: [PendingRemoval] = []
  }

  init(
    opening folder: VaultFolder, description: VaultDescription, keybag: [UInt8], keys: UnlockedKeys,
    keyStore: any KeyStore, lock: OwnedDescriptor, time: any TimeSource, options: VaultOptions
  ) throws {
    // Once more: a passcode was typed and derived since, or keys were replaced.
    try options.scheduler.requireReady()
    id = description.id
    self.keys = KeyRing(keys)
    self.keyStore = keyStore
    scheduler = options.scheduler
    self.lock = lock
    self.time = time
    self.folder = folder
    index = try Index(in: folder, keys: keys, vault: description.id)
    objects = try ObjectStore(
      files: folder.files, vaultFolder: folder.descriptor, rowKeys: RowKeys(metadataKey: keys.metadata))
    ballast = Ballast(files: folder.files, vaultFolder: folder.descriptor)
    room = DiskRoom(folder: folder.descriptor)
    timer = CommitTimer(options.scheduler)
    let found = try keyStore.read(.anchor, of: description.id).flatMap { bytes in
      try? Anchor(decoding: bytes.withUnsafeBytes { Array($0) })
    }
    let keybagDigest = Digest.sha256(keybag)
    anchor = AnchorKeeper(
      keyStore, vault: id, keybagDigest: keybagDigest, isBound: found?.isBound, time: time,
      place: try? FolderPlace(of: folder))
    let isCurrent = Vault.isCurrent(index.read { $0.committed }, keybagDigest: keybagDigest, anchor: found)
    isReadOnly = !isCurrent && !options.acceptsOlderState
    if isReadOnly { return }
    ballast.restore()
    if !isCurrent {
      // From now on this is the vault, and what the device saw before is not.
      index.read { $0.beginBranch(above: found?.generation ?? 0) }
      try commit()
      try anchor.flush()
    } else if found?.nextKeybagDigest != nil {
      // A change of the passcode that a crash left half done: the keybag that is here has just been opened.
      try anchor.followKeybag(keybagDigest, next: nil, index.read { $0.committed })
    }
    do {
      // One kind of mark that is damaged keeps nobody from the other.
      let deposits = Result { try completeDeposits() }
      try recover()
      try deposits.get()
    } catch {
      // Where the marks are damaged, what a crash left stays: no reason to keep anyone from the rest. A verification says
      // what it is.
      guard case .damaged = VaultError.wrapping(error) else { throw error }
    }
  }

  // MARK: Commit

  /// Makes every change so far durable: what was written to open files, objects' bytes, their names, the index, and then
  /// the anchor in the key store.
  ///
  /// A file that cannot be stored does not keep the others back: they are durable also where this throws for its sake.
  public func commit() throws(VaultError) {
    defer { files.dropKeysLeft() }
    removeLetGo()
    let joined = Result { () throws(VaultError) in try VaultError.catching { try files.joinAll() } }
    try commitJoined()
    try joined.get()
  }

  /// Whether so much more finds room on the vault's disk now. Nobody else is kept from taking it first.
  public func hasRoom(forBytes byteCount: UInt64) -> Bool {
    room.has(min(Int(clamping: byteCount), .max - DiskRoom.reserve) + DiskRoom.reserve, fileCount: 0)
  }

  /// There was no room for all that waits in memory when it was to be stored last.
  public var waitsForRoom: Bool {
    room.hasRefused.load(ordering: .relaxed) || files.waitForRoom
  }

  /// Makes durable what has joined the index, without waiting for what open files have in memory.
  func commitJoined() throws(VaultError) {
    try VaultError.catching { try commitIndex() }
  }

  /// Deletes the objects of what a commit removed. What fails is tried again after the next commit, and by the next
  /// opening, for its mark stays.
  func finish(_ removals: [PendingRemoval]) {
    let removals = state.withLock { state -> [PendingRemoval] in
      state.removals += removals
      guard state.holds.isEmpty else { return [] }
      defer { state.removals = [] }
      return state.removals
    }
    // What was a whole file's nobody uses any more.
    let emptied = room.isShort ? removals.lazy.filter { $0.inode != nil }.compactMap { $0.object?.number } : []
    let failures = objects.remove(removals.compactMap { $0.object?.number }, emptying: Set(emptied))
    var done = removals
    let middle = done.partition { removal in removal.object.map { failures[$0.number] != nil } ?? false }
    let failed = done[middle...]
    done.removeSubrange(middle...)
    if !failed.isEmpty { state.withLock { $0.removals += failed } }
    guard !done.isEmpty else { return }
    // The marks go with the next commit: a crash before it removes the objects once more, which does nothing.
    try? index.perform { session in for removal in done { try session.removePending(removal.mark) } }
  }

  /// As `finish`, for a commit that somebody waits for: a system that frees a large file keeps who removes it waiting, and the
  /// commit is durable already. Who needs the room waits for it, and so does who closes the vault.
  ///
  /// - Parameter number: of the commit; ended here.
  /// - Returns: `false` where that thread is still busy: who removes faster than the system can delete has to wait.
  private func finishBeside(_ removals: [PendingRemoval], _ number: UInt64) -> Bool {
    guard !isDeletingBeside.exchange(true, ordering: .acquiring) else { return false }
    commits.run { [self] in
      defer {
        isDeletingBeside.store(false, ordering: .releasing)
        roomGivenBack.end(number)
      }
      finish(removals)
    }
    return true
  }

  /// To delete the objects takes longer than to start a thread.
  private func isLong(_ removals: [PendingRemoval]) -> Bool {
    if removals.count > Self.removalsAtOnce { return true }
    var byteCount: UInt64 = 0
    for case let object? in removals.lazy.map(\.object) {
      byteCount += objects.allocatedByteCount(of: object.number)
      if byteCount > Self.removedBytesAtOnce { return true }
    }
    return false
  }

  private static let removalsAtOnce = 64
  private static let removedBytesAtOnce: UInt64 = 4 << 20

  // MARK: Holding a generation

  /// Runs `body` while everything that a commit refers to stays as it is: slots and objects that are freed meanwhile
  /// wait, however long it takes. The commit is the last one before `body`, or one that follows.
  func holding<Result>(_ body: () throws -> Result) throws -> Result {
    let generation = index.read { $0.committed.generation }
    state.withLock { $0.holds.append(generation) }
    defer {
      state.withLock { state in
        if let position = state.holds.firstIndex(of: generation) { state.holds.remove(at: position) }
      }
      files.didCommit(generation: releasable(index.read { $0.committed.generation }), isShort: room.isShort)
      finish([])
    }
    return try body()
  }

  /// The newest generation of which nothing older is held.
  private func releasable(_ generation: UInt64) -> UInt64 {
    state.withLock { state in state.holds.min().map { min($0, generation) } ?? generation }
  }

  /// - Parameter begun: a commit to be brought to its end; else one is begun, if it is needed.
  private func commitIndex(_ begun: CommitUnderWay? = nil) throws {
    if try commitGivingBack(begun, mayWait: begun == nil) { return }
    roomGivenBack.wait()
    _ = try commitGivingBack(begun, mayWait: false)
  }

  /// - Returns: `false` where there is no room for it, while another commit gives some back, or did meanwhile.
  private func commitGivingBack(_ begun: CommitUnderWay?, mayWait: Bool) throws -> Bool {
    // Until what it has freed is given back, whoever does that.
    let own = roomGivenBack.begin()
    let othersRan = roomGivenBack.isRunning(besides: own)
    var number: UInt64? = own
    defer { if let number { roomGivenBack.end(number) } }
    let committed: Index.Committed?
    room.look()
    index.tables.keepsLogShort.store(room.isShort, ordering: .relaxed)
    index.tables.growthLimit.store(room.isAmple ? .max : Ballast.byteCount / 4, ordering: .relaxed)
    var isLent = false
    do {
      let prepare = { [objects] in try objects.syncFolders() }
      // Only for what makes room: anything else would use it up, and nothing could be removed any more.
      let makeRoom = { (commit: CommitUnderWay, isShrinking: Bool) in
        guard !isLent, isShrinking || self.givesMore(commit) else { return false }
        isLent = self.ballast.lend()
        return isLent
      }
      defer { if isLent { ballast.takeBack() } }
      committed =
        if let begun {
          try index.finish(begun, prepare: prepare, makeRoom: makeRoom)
        } else {
          try index.commit(prepare: prepare, makeRoom: makeRoom)
        }
    } catch {
      let isFull = VaultError.wrapping(error) == .full
      if isFull { room.hasRefused.store(true, ordering: .relaxed) }
      if isLent {
        index.cutLog()
        ballast.restore()
      }
      if isFull, mayWait, othersRan || roomGivenBack.isRunning(besides: own) { return false }
      files.commitFailed(error, after: index.read { $0.committed.generation })
      throw error
    }
    let wasShort = room.isShort || isLent
    room.hasRefused.store(false, ordering: .relaxed)
    guard let (root, removals) = committed else { return true }
    files.didCommit(generation: releasable(root.generation), isShort: wasShort)
    if begun == nil, !wasShort, isLong(removals), let handedOver = number, finishBeside(removals, handedOver) {
      number = nil
    } else {
      finish(removals)
    }
    // At once, before somebody else takes the room that a removal made.
    if isLent { index.cutLog() }
    ballast.restore()
    try withRoom { try anchor.follow(root) }
    return true
  }

  /// Runs what writes to the key store, which may lie on the vault's disk.
  private func withRoom(_ body: () throws -> Void) throws {
    do { try body() } catch {
      guard VaultError.wrapping(error) == .full, ballast.lend() else { throw error }
      defer {
        ballast.takeBack()
        ballast.restore()
      }
      try body()
    }
  }

  /// The objects and slots that go with a commit give back more than its rows take.
  private func givesMore(_ commit: CommitUnderWay) -> Bool {
    // While somebody holds an older commit, nothing is deleted.
    guard state.withLock({ $0.holds.isEmpty }) else { return false }
    // Rows are sealed, and lie in pages that are not full.
    let wanted = UInt64(max(1, 2 * commit.changes.byteCount))
    var found = files.freedByteCount(by: commit.generation)
    if found >= wanted { return true }
    for case let object? in commit.removals.lazy.map(\.object) {
      found += objects.allocatedByteCount(of: object.number)
      if found >= wanted { return true }
    }
    return false
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

  /// Whether these bytes are the vault's keybag, or one that is about to take its place.
  func hasKeybag(_ bytes: [UInt8]) -> Bool { anchor.accepts(keybagDigest: Digest.sha256(bytes)) }

  /// Writes to the key store which keybag belongs to the vault, and which one may take its place.
  func followKeybag(_ present: [UInt8], next: [UInt8]?) throws {
    try anchor.followKeybag(present, next: next, index.read { $0.committed })
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
        files.close()
        try? index.close()
        commits.wait()
        lock.unlock()
      }
      if isReadOnly { return }
      defer { anchor.end() }
      // Nobody else will need them.
      objects.mayUseReserve.store(true, ordering: .relaxed)
      // What cannot be stored of one file keeps nothing else back, and what a commit lets go of may be what it needs.
      var committed: Result<Void, VaultError>
      var unjoined: Int
      repeat {
        unjoined = files.unjoinedCount
        committed = Result { () throws(VaultError) in try commit() }
      } while committed.isOfRoom && files.unjoinedCount < unjoined
      // What they have removed is to be marked, and what they have stored is to be the anchor's.
      commits.wait()
      let marks = Result { try commitIndex() }
      try withRoom { try anchor.flush() }
      try committed.get()
      try marks.get()
    }
  }

  // MARK: Changing

  /// Runs one change: all of it or nothing. What it throws was not applied.
  ///
  /// - Parameter addition: nil where it takes something away.
  func change<Result>(
    adding addition: Addition? = nil, _ body: (IndexSession) throws -> Result
  ) throws(VaultError) -> Result {
    let result = try perform(adding: addition, body)
    removeUnlinked()
    return result
  }

  /// As `change`, without the removal of what it unlinked.
  func perform<Result>(
    adding addition: Addition? = nil, _ body: (IndexSession) throws -> Result
  ) throws(VaultError) -> Result {
    guard !isReadOnly else { throw .olderThanAnchor }
    return try VaultError.catching {
      var lacksRoom = false
      do {
        let isShort = room.isShort(changing: DiskRoom.operationByteCount + (addition?.contentByteCount ?? 0))
        if isShort, let addition, !addition.isInPlace { try requireRoom(for: addition) }
        // Bounds what a crash undoes and what memory holds. Before the operation, not behind it: a commit that fails must
        // not look like an operation that failed.
        try makeRoom { $0.isFull(operationLimit: room.operationLimit) ? .first : .none }
      } catch {
        // What adds something is refused when nothing else is wrong with it. What does not goes on: else nothing could be
        // removed, and a commit would never find room.
        guard VaultError.wrapping(error) == .full, !index.read(\.isOverfull) else { throw error }
        lacksRoom = true
      }
      if addition?.isInPlace == true, index.read(\.isStuck) {
        guard room.isWorthTrying() else { throw VaultError.full }
        try commitJoined()
      }
      let (result, changes) = try index.perform(lacksRoom: lacksRoom) { session in
        (try body(session), changeObservers.isEmpty ? [] : session.takeNoted())
      }
      commitSoon()
      if !changes.isEmpty { changeObservers.tell(changes) }
      return result
    }
  }

  /// Throws `full` where something does not fit on the disk beside what waits for its place there.
  func requireRoom(for addition: Addition) throws {
    func fits() -> Bool {
      let waiting = index.read(\.uncommitted)
      let rows = DiskRoom.reserve + (waiting.operationCount + 1) * DiskRoom.operationByteCount + 2 * waiting.byteCount
      let buffered = files.bufferedByteCount
      // Each file whose content waits may need one, and a folder for it.
      let unjoined = min(buffered / VaultFormat.inlineLimit, files.unjoinedCount)
      let fileCount = addition.byteCount > 0 ? 16 + 2 * unjoined : 0
      return room.has(
        addition.contentByteCount + buffered + max(0, rows - index.tables.freeByteCount), fileCount: fileCount)
    }
    if fits() { return }
    // What waits takes less once it is in its place, and what is removed gives room back.
    try commitJoined()
    if fits() { return }
    // Another thread may have made the commit, and still be giving that room back.
    roomGivenBack.wait()
    guard fits() else { throw VaultError.full }
  }

  /// How much an operation needs a commit before it.
  enum CommitNeed { case none, soon, first }

  /// Commits where an operation needs it, beside the operations that go on: it waits only where another commit is under way,
  /// and has not made room yet.
  func makeRoom(_ need: (IndexSession) -> CommitNeed) throws {
    while true {
      let (need, underWay) = index.read { (need($0), $0.underWay) }
      if need == .none { return }
      if commits.hasFailed {
        // Once more, for somebody who can be told.
        try commitJoined()
        commits.forgetFailure()
      } else if let underWay {
        if need == .soon { return }
        underWay.wait()
      } else if let commit = try index.beginCommit() {
        commits.run { [self] in try commitIndex(commit) }
      }
    }
  }

  /// Sees to it that what has just changed does not wait long for a commit.
  func commitSoon() {
    timer.set { { [weak self] in self?.commitInBackground() } }
  }

  /// A failure is found again by whoever commits next.
  func commitInBackground() {
    if state.withLock({ $0.isClosed }) { return }
    defer { files.dropKeysLeft() }
    removeLetGo()
    try? files.joinAll()
    do {
      try commitJoined()
      try withRoom { try anchor.flush() }
    } catch {
      // There may be room later, without anybody changing something here.
      if VaultError.wrapping(error).isOfRoom { commitSoon() }
    }
    ballast.restore()
  }

  func look<Result>(_ body: (IndexSession) throws -> Result) throws(VaultError) -> Result {
    try VaultError.catching { try index.read(body) }
  }

  private static func isCurrent(_ root: CommittedRoot, keybagDigest: [UInt8], anchor: Anchor?) -> Bool {
    // The secret is there and the anchor is not: someone took it away.
    guard let anchor else { return false }
    return anchor.accepts(keybagDigest: keybagDigest) && anchor.accepts(root)
  }
}

extension Anchor {
  var secretBytes: SecretBytes { encoded().withUnsafeBytes { SecretBytes(copying: $0) } }
}
