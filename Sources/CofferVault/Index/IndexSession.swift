internal import CofferCrypto
internal import CofferFiles
internal import CofferKeys
internal import CofferSystem
internal import Synchronization

/// The index as operations see it: the rows of the last commit, over them those of a commit under way, and over them what
/// was changed since.
///
/// Changes gather in memory and are written in one transaction. So an operation that fails is undone without asking SQLite, a
/// row that changes a hundred times is sealed once, and a commit that found the disk full can be made again. Used only under
/// the index's lock, but for ``store(_:_:)``.
///
/// Nothing here reads from SQLite, unless the caller has the connection: an operation that needs what is not in memory is undone,
/// and ``Index`` reads it and begins the operation anew. So an operation's closure may run more than once, and changes nothing
/// but the session before its last look at it.
final class IndexSession {
  var rowKeys: RowKeys
  /// Numbers are taken from here; the last commit's, and its buckets, are in `stored`.
  var root: RootRecord

  let stored: StoredRows
  /// Opened records that equal what is stored: about a MiB to two, and for a mount four to eight.
  private var cache = GenerationCache<RowID, Record>(limit: cacheLimit)
  private static let cacheLimit = 1 << 20
  /// Names, and what they stand for, as they are stored: for whoever lists folders again, or removes what is in them.
  var listed = ListedRows()
  /// What changed since the last commit began.
  private var buffer = ChangeBuffer()
  /// Its changes lie between the stored rows and `buffer`.
  private(set) var underWay: CommitUnderWay?
  /// Commits that failed since the last one: their generations are not given again, for files wait for them.
  private var failedCount: UInt64 = 0
  /// What the running operation replaced in `buffer`, for when it fails.
  private var journal: [(id: RowID, before: ChangeBuffer.Row?)] = []
  /// Removed by operations since the last commit began: their objects go when the next is durable, and stay when it is not.
  private var removals: [PendingRemoval] = []
  /// What the running operation wants done when it is applied.
  private var operationRemovals: [PendingRemoval] = []
  private var operationEffects: [() -> Void] = []
  /// What the running operation changed that others may remember.
  private var noted: [TreeChange] = []
  /// The running operation must not add anything.
  private var lacksRoom = false
  private var hasFailed = false
  /// Operations since the last commit began.
  private(set) var operationCount = 0
  /// Names that were given and taken since the vault was opened.
  var nameChangeCount: UInt64 = 0
  /// Rises with whatever changes a row.
  private(set) var changeCount: UInt64 = 0
  private var inodesAhead = InodesAhead()
  var orphans = Orphans()
  /// How often everything was forgotten that had been read.
  private(set) var forgetCount = 0

  /// As many operations as there were when a commit last found the disk full; nil since one has succeeded.
  private var operationCountAtFailure: Int?

  private static let stuckCount = 1024

  init(stored: StoredRows, keys: UnlockedKeys) {
    self.stored = stored
    root = stored.root
    rowKeys = RowKeys(metadataKey: keys.metadata)
  }

  // MARK: Transactions

  var committed: CommittedRoot {
    CommittedRoot(branch: stored.root.branch, generation: stored.root.generation, commit: stored.root.commit)
  }

  /// With what the last commit left of buckets, which `root` has from the opening.
  var storedRoot: RootRecord { stored.root }

  /// `root.nextObject` of the last commit: objects from here on are unknown to a vault that crashes now.
  var committedNextObject: UInt64 { stored.root.nextObject }

  /// The generation of the commit that will hold what changes from now on.
  var nextGeneration: UInt64 { (underWay?.generation ?? stored.root.generation + failedCount) + 1 }

  /// The generation of the commit that holds, or will hold, everything so far.
  var newestGeneration: UInt64 { hasChanges ? nextGeneration : underWay?.generation ?? stored.root.generation }

  private var hasChanges: Bool {
    let last = underWay?.numbers ?? stored.root
    return !buffer.rows.isEmpty || !removals.isEmpty || root.nextObject != last.nextObject || root.branch != last.branch
  }

  /// So much has gathered that the next operation should wait until a commit has begun.
  ///
  /// - Parameter operationLimit: how many operations one commit may hold, where little room is left on the disk.
  func isFull(operationLimit: Int) -> Bool {
    reaches(GatheringLimits(operations: operationLimit)) && (mayHaveRoom || isOverfull)
  }

  /// No commit has found the disk full, or enough has been done since that another may find room.
  var mayHaveRoom: Bool { operationCountAtFailure.map { operationCount >= $0 + max(16, $0 / 8) } ?? true }

  /// So much has gathered that nothing more can wait for room on the disk.
  var isOverfull: Bool { reaches(.ofFullDisk) }
  /// A commit has found the disk full, and so much has gathered that the rest is kept for what removes something.
  var isStuck: Bool { operationCountAtFailure != nil && operationCount >= Self.stuckCount }

  private func reaches(_ limits: GatheringLimits) -> Bool {
    operationCount >= limits.operations || buffer.rows.count >= limits.rows || buffer.byteCount >= limits.bytes
  }

  /// Operations that no commit has stored yet, and about how many bytes their rows take.
  var uncommitted: (operationCount: Int, byteCount: Int) {
    (operationCount + (underWay?.operationCount ?? 0), buffer.byteCount + (underWay?.changes.byteCount ?? 0))
  }

  /// The object of `removal` shall go once the running operation is committed; nothing happens where it is not.
  func removeObjectAfterCommit(_ removal: PendingRemoval) { operationRemovals.append(removal) }

  /// Runs `effect` once the running operation is applied; never where it fails.
  func afterOperation(_ effect: @escaping () -> Void) { operationEffects.append(effect) }

  /// Tells whoever observes the vault of a change, once the running operation is applied.
  func note(_ change: TreeChange) { noted.append(change) }

  /// What the running operation noted.
  func takeNoted() -> [TreeChange] {
    defer { noted = [] }
    return noted
  }

  /// Throws after a commit that failed: what is in memory is no longer what is stored.
  func requireUsable() throws {
    guard !hasFailed else { throw VaultError.needsReopening }
  }

  /// Throws `full` where there is no room for what the running operation adds: a name, or an attribute.
  func requireRoom() throws {
    if lacksRoom { throw VaultError.full }
  }

  /// Runs one operation: all of its changes stay, or none.
  func operation<Result>(lacksRoom: Bool = false, _ body: () throws -> Result) throws -> Result {
    try requireUsable()
    self.lacksRoom = lacksRoom
    let rootBefore = root
    journal.removeAll(keepingCapacity: true)
    operationRemovals = []
    operationEffects = []
    noted.removeAll(keepingCapacity: true)
    do {
      let result = try body()
      // Also where the body went on without it.
      guard stored.missing.isEmpty else { throw NotInMemory() }
      operationCount += 1
      changeCount += 1
      removals += operationRemovals
      let effects = operationEffects
      operationEffects = []
      for effect in effects { effect() }
      return result
    } catch {
      root = rootBefore
      operationEffects = []
      for change in journal.reversed() { buffer.put(change.before, at: change.id) }
      throw error
    }
  }

  // MARK: Committing

  /// Takes everything so far out of the buffer, for a commit that the caller must bring to its end: by ``prepare(_:_:_:)``,
  /// ``store(_:_:)`` and ``takeOver(_:_:)``, as often as it likes, or by ``fail(_:isFinal:)``. There is one at a time.
  func beginCommit() throws -> CommitUnderWay {
    try requireUsable()
    precondition(underWay == nil, "one commit at a time")
    for mark in orphans.takeUnmarked() {
      buffer.put(.record(.bytes(mark.removal.encoded())), at: mark.row)
      changeCount += 1
    }
    let commit = CommitUnderWay(
      buffer, removals: removals, operationCount: operationCount, numbers: root, generation: nextGeneration)
    underWay = commit
    buffer = ChangeBuffer()
    removals = []
    operationCount = 0
    return commit
  }

  /// Gathers what `commit` needs to know of the last one.
  ///
  /// - Parameter rows: what was gathered before it had to begin anew.
  func prepare(
    _ commit: CommitUnderWay, _ changes: [StoredRows.Change], _ rows: inout StoredRows.ReplacedRows
  ) throws -> StoredRows.Preparation {
    try requireUsable()
    return try stored.prepare(changes, &rows, numbers: commit.numbers, generation: commit.generation)
  }

  /// Stores what was prepared. Needs not the index's lock: it may take long. Who waits for the commit goes on when it is stored, before
  /// what is done to the log behind it: but where little room is left, for then the next commit shall not take what this one gives back.
  func store(_ preparation: StoredRows.Preparation, _ commit: CommitUnderWay) {
    stored.store(preparation) { outcome in
      commit.outcome = outcome
      if underWay === commit, !stored.tables.keepsLogShort.load(ordering: .relaxed) { takeOverIfStored() }
    }
  }

  /// What was stored is the last commit from now on, unless a reader saw to that before. Throws where nothing was stored.
  func takeOver(_ commit: CommitUnderWay, _ preparation: StoredRows.Preparation) throws -> CommittedRoot {
    if underWay === commit { takeOverIfStored() }
    if let committed = commit.committed { return committed }
    guard underWay === commit, case .failure(let error)? = commit.outcome else { throw VaultError.needsReopening }
    stored.giveUp(preparation)
    throw error
  }

  /// The changes of a commit take no more room than what they remove gives: names go, or change.
  func isShrinking(_ commit: CommitUnderWay) throws -> Bool {
    let differences = try gather(commit.changes.rows) { id, row in
      switch row {
      case .removed: return -1
      case .record(.inode(let inode)):
        let hasContent = if case .inline = inode.content { 1 } else { 0 }
        return try hasContent + (stored.contains(id) ? 0 : 1)
      case .record: return try id.kind != .entry || !stored.contains(id) ? 1 : 0
      }
    }
    return differences.reduce(0, +) <= 0
  }

  /// Ends a commit of which nothing was stored: its changes are as if it had never begun, and can be committed again.
  ///
  /// - Parameter isFinal: nobody can know what is stored, and the vault must be opened again.
  func fail(_ commit: CommitUnderWay, isFinal: Bool) {
    defer { commit.end() }
    guard underWay === commit else { return }
    if isFinal { return abandon() }
    underWay = nil
    failedCount += 1
    let later = buffer
    buffer = commit.changes
    for (id, row) in later.rows { buffer.put(row, at: id) }
    removals = commit.removals + removals
    operationCount += commit.operationCount
    operationCountAtFailure = operationCount
  }

  /// Where the commit under way is stored, it is the last one from now on.
  func takeOverIfStored() {
    guard let commit = underWay, case .success(let result)? = commit.outcome else { return }
    stored.takeOver(result)
    for (id, row) in commit.changes.rows {
      if let record = row.record, id.kind.isCached {
        cache.insert(record, id, cost: record.cost)
      } else {
        cache.remove(id)
      }
      listed.didCommit(id, row.record)
    }
    underWay = nil
    failedCount = 0
    operationCountAtFailure = nil
    commit.committed = committed
    commit.end()
  }

  /// Draws a new branch with a generation above `anchor`: what is stored here is the vault from now on.
  func beginBranch(above generation: UInt64) {
    root.branch = Randomness.bytes(RootRecord.branchByteCount)
    stored.raiseGeneration(to: generation)
  }

  /// Gives up what is in memory: it no longer fits what is stored.
  private func abandon() {
    hasFailed = true
    cache = GenerationCache(limit: cache.limit)
    listed = ListedRows(limit: listed.limit)
    buffer = ChangeBuffer()
    removals = []
    underWay?.end()
    underWay = nil
  }

  /// Nothing can be done any more, and what was not committed is lost; or returns the commit that is to be waited for first.
  func endUnlessCommitting() -> CommitUnderWay? {
    if let underWay { return underWay }
    abandon()
    return nil
  }

  // MARK: What is not in memory

  /// Whether what is needed is read at once, because the caller has the connection: so from the beginning.
  var hasConnection: Bool {
    get { stored.hasConnection }
    set { stored.hasConnection = newValue }
  }

  /// What the running operation needs that must be read before it begins anew.
  var missing: [StoredRead] { stored.missing }
  /// What it is likely to need next.
  var askedAhead: [StoredRead] { stored.askedAhead }

  /// An operation begins, or begins anew with what was read for it.
  func begin(_ answers: StoredAnswers) { stored.begin(answers) }
  /// What was read for the operation, for when it begins anew.
  func end() -> StoredAnswers { stored.end() }

  /// What must be found by each of `reads`, less those that nobody needs any more.
  func expectations(of reads: [StoredRead]) -> [(read: StoredRead, expected: StoredRead.Expectation)] {
    takeOverIfStored()
    return Set(reads).compactMap { read in stored.expectation(of: read).map { (read, $0) } }
  }

  /// Remembers what was found, or gives it to the operation that asked. What a commit has changed meanwhile is not remembered, and is
  /// asked for again (``StoredAnswers``).
  func take(
    _ found: [(read: StoredRead, expected: StoredRead.Expectation, outcome: StoredRead.Outcome)],
    for answers: inout StoredAnswers
  ) {
    for (read, expected, outcome) in found {
      let isPresent = stored.expectation(of: read) == expected
      // A page is used from where it is remembered.
      if !isPresent, case .page = read { continue }
      guard let outcome = isPresent ? stored.take(outcome, of: read) : outcome else { continue }
      // Also for who comes next: it may have been asked for ahead.
      if isPresent, case .value(let id) = read, case .success(.value(let bytes)) = outcome, id.kind == .inode {
        cache.insert(.bytes(bytes), id, cost: Record.bytes(bytes).cost)
      }
      if case .success(.bucket) = outcome, !answers.keepsBuckets { continue }
      answers.add(outcome, of: read, expected)
    }
  }

  // MARK: Rows

  /// As ``StoredRows/heldBucketLimit``.
  var heldBucketLimit: Int {
    get { stored.heldBucketLimit }
    set { stored.heldBucketLimit = newValue }
  }

  /// How many rows of the last commit a bucket has, held against its sum.
  func verifiedRowCount(of bucket: Int) throws -> UInt64 { try stored.rowCount(of: bucket) }

  /// The opened value of a row, or nil where there is none.
  func value(_ kind: RecordKind, _ key: RowKey) throws -> [UInt8]? {
    try record(RowID(kind: kind, key: key))?.encoded
  }

  func set(_ kind: RecordKind, _ key: RowKey, _ plaintext: [UInt8]) throws {
    try set(.bytes(plaintext), RowID(kind: kind, key: key))
  }

  func remove(_ kind: RecordKind, _ key: RowKey) throws {
    let id = RowID(kind: kind, key: key)
    try requireOperation(id)
    // A row that was never stored leaves nothing to remove.
    let isStored = try stored.contains(id)
    let isBelow = underWay?.changes[id].map { $0.record != nil } ?? isStored
    buffer(isBelow ? .removed : nil, at: id)
  }

  /// At most about `limit` opened rows whose keys begin with `prefix`, ascending from after `last` on; none where there
  /// are no more.
  func rows(_ kind: RecordKind, prefix: RowPrefix, after last: RowKey?, limit: Int) throws -> [(RowKey, [UInt8])] {
    var last = last
    while true {
      let keys = try stored.keys(kind, prefix: prefix, after: last, limit: limit)
      let isEnd = keys.count < limit
      // Changed rows lie between the stored ones.
      let changed = changedKeys(kind, prefix).filter { key in
        (last.map { $0 < key } ?? true) && (isEnd || keys.last.map { key <= $0 } ?? false)
      }
      let values = try keys.last.map { try stored.values(kind, after: last, through: $0, count: keys.count) } ?? [:]
      let merged = merge(values, with: changed, kind)
      if isEnd || !merged.isEmpty { return merged }
      last = keys.last
    }
  }

  private func merge(
    _ values: [RowKey: [UInt8]], with changed: Set<RowKey>, _ kind: RecordKind
  ) -> [(RowKey, [UInt8])] {
    var values = values
    for key in changed { values[key] = self.changed(RowID(kind: kind, key: key))?.record?.encoded }
    return values.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  // MARK: Memory

  /// Keeps as many names and attributes for who lists folders again, and more records than a command needs; nil gives that
  /// memory back.
  func remember(_ count: Int?) {
    stored.remembersMore = count != nil
    guard let count else {
      cache = GenerationCache(limit: Self.cacheLimit)
      listed = ListedRows()
      return
    }
    listed.limit = count
    cache.limit = 4 * Self.cacheLimit
  }

  /// Reads everything anew from here on: for ``Index/forgetOpened()``.
  func forgetOpened() {
    forgetCount += 1
    inodesAhead = InodesAhead()
    cache = GenerationCache(limit: cache.limit)
    listed = ListedRows(limit: listed.limit)
    // What has changed was verified before, and is to be committed by that.
    var needed = Set(buffer.rows.keys.map(\.key.bucket)).union(orphans.unmarkedBuckets)
    if let underWay { needed.formUnion(underWay.changes.rows.keys.map(\.key.bucket)) }
    stored.forgetVerified { needed.contains($0) }
  }

  // MARK: Inodes

  func inode(_ number: InodeNumber) throws -> Inode {
    guard let inode = try inodeIfPresent(number) else { throw VaultError.damaged(what: "an inode is missing") }
    return inode
  }

  func inodeIfPresent(_ number: InodeNumber) throws -> Inode? { try storedInode(number).map(orphans.present) }

  /// As its record has it.
  private func storedInode(_ number: InodeNumber) throws -> Inode? {
    let id = RowID(kind: .inode, key: rowKeys.inode(number))
    let found: Record?
    do { found = try record(id) } catch let error as NotInMemory {
      askAhead(of: number)
      throw error
    }
    switch found {
    case nil: return nil
    case .inode(let inode)?:
      guard inode.number == number else { throw MalformedBytes() }
      return inode
    case .bytes(let bytes)?:
      let inode = try Inode(decoding: bytes, expecting: number)
      // A record that was read, not one that was changed: those are inodes already.
      cache.insert(.inode(inode), id, cost: Record.inode(inode).cost)
      return inode
    }
  }

  private func askAhead(of number: InodeNumber) {
    guard let numbers = inodesAhead.next(missing: number.value) else { return }
    for next in numbers {
      let id = RowID(kind: .inode, key: rowKeys.inode(InodeNumber(value: next)))
      if changed(id) == nil, cache.find(id) == nil { stored.askAhead(for: id) }
    }
  }

  func store(_ inode: Inode) throws { try set(.inode(inode), RowID(kind: .inode, key: rowKeys.inode(inode.number))) }

  // MARK: Buffer

  /// What changed of a row since the last commit.
  func changed(_ id: RowID) -> ChangeBuffer.Row? { buffer[id] ?? underWay?.changes[id] }

  func changedKeys(_ kind: RecordKind, _ prefix: RowPrefix) -> Set<RowKey> {
    let keys = buffer.keys(kind, prefix)
    guard let underWay else { return keys }
    return keys.union(underWay.changes.keys(kind, prefix))
  }

  private func record(_ id: RowID) throws -> Record? {
    if let changed = changed(id) { return changed.record }
    if let known = cache.find(id) { return known }
    guard let bytes = try stored.value(id) else { return nil }
    if id.kind.isCached { cache.insert(.bytes(bytes), id, cost: Record.bytes(bytes).cost) }
    return .bytes(bytes)
  }

  private func set(_ record: Record, _ id: RowID) throws {
    try requireOperation(id)
    buffer(.record(record), at: id)
  }

  /// A bucket that does not fit its sum fails the operation that would write there, not the commit of many.
  func requireOperation(_ id: RowID) throws { try stored.verify(id.key.bucket) }

  private func buffer(_ row: ChangeBuffer.Row?, at id: RowID) {
    journal.append((id, buffer[id]))
    buffer.put(row, at: id)
  }
}

extension RecordKind {
  /// Whether opened records are worth keeping: map pages have a cache of their own, with their files.
  fileprivate var isCached: Bool { self != .map }
}
