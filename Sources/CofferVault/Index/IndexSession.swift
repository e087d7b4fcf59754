internal import CofferCrypto
internal import CofferFiles
internal import CofferKeys
internal import CofferSystem

/// The index as operations see it: the rows of the last commit, and over them what was changed since.
///
/// Changes gather in memory and are written in one transaction by ``commit()``. So an operation that fails is undone
/// without asking SQLite, a row that changes a hundred times is sealed once, and a commit that found the disk full can
/// be made again. Used only under the index's lock.
final class IndexSession {
  var rowKeys: RowKeys
  /// Numbers are taken from here; the last commit's are in `stored`.
  var root: RootRecord

  private let stored: StoredRows
  /// Opened records that equal what is stored: about a MiB to two, and for a mount four to eight.
  private var cache = GenerationCache<RowID, Record>(limit: cacheLimit)
  private static let cacheLimit = 1 << 20
  /// Names, and what they stand for, as they are stored: for whoever lists folders again, or removes what is in them.
  private var listed = ListedRows()
  /// What changed since the last commit.
  private var buffer: [RowID: BufferedRow] = [:]
  private var bufferedBytes = 0
  /// The keys in `buffer` by their prefix, for kinds that are read in order.
  private var bufferedKeys: [RowFamily: Set<RowKey>] = [:]
  /// What the running operation replaced in `buffer`, for when it fails.
  private var journal: [(id: RowID, before: BufferedRow?)] = []
  /// Removed by operations since the last commit: their objects go when it is durable, and stay when it is not.
  private var removals: [PendingRemoval] = []
  /// What the running operation wants done when it is applied.
  private var operationRemovals: [PendingRemoval] = []
  private var operationEffects: [() -> Void] = []
  /// What the running operation changed that others may remember.
  private var noted: [TreeChange] = []
  private var hasFailed = false
  /// Operations since the last commit.
  private(set) var operationCount = 0

  private enum BufferedRow {
    case record(Record)
    case removed

    var cost: Int { if case .record(let record) = self { record.cost } else { 64 } }
    var record: Record? { if case .record(let record) = self { record } else { nil } }
  }

  /// Operations, rows and bytes that gather before a commit is made in any case: bounds memory, and what a crash undoes.
  private static let limits = (operations: 4096, rows: 8192, bytes: 1 << 20)

  init(stored: StoredRows, keys: UnlockedKeys) {
    self.stored = stored
    root = stored.root
    rowKeys = RowKeys(metadataKey: keys.metadata)
  }

  // MARK: Transactions

  var committed: CommittedRoot {
    CommittedRoot(branch: stored.root.branch, generation: stored.root.generation, sealed: stored.sealedRoot)
  }

  /// `root.nextObject` of the last commit: objects from here on are unknown to a vault that crashes now.
  var committedNextObject: UInt64 { stored.root.nextObject }

  var hasChanges: Bool {
    !buffer.isEmpty || !removals.isEmpty || root.nextObject != stored.root.nextObject
      || root.branch != stored.root.branch
  }

  /// So much has gathered that the next operation should wait for a commit.
  var isFull: Bool {
    operationCount >= Self.limits.operations || buffer.count >= Self.limits.rows
      || bufferedBytes >= Self.limits.bytes
  }

  /// The changes take no more room than what they remove gives: names go, or change.
  var isShrinking: Bool {
    get throws {
      var difference = 0
      for (id, row) in buffer {
        switch row {
        case .removed: difference -= 1
        case .record(.inode(let inode)):
          if case .inline = inode.content { difference += 1 }
          if try !stored.contains(id.kind, id.key) { difference += 1 }
        case .record: if try id.kind != .entry || !stored.contains(id.kind, id.key) { difference += 1 }
        }
      }
      return difference <= 0
    }
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

  /// Runs one operation: all of its changes stay, or none.
  func operation<Result>(_ body: () throws -> Result) throws -> Result {
    try requireUsable()
    let rootBefore = root
    journal.removeAll(keepingCapacity: true)
    operationRemovals = []
    operationEffects = []
    noted.removeAll(keepingCapacity: true)
    do {
      let result = try body()
      operationCount += 1
      removals += operationRemovals
      let effects = operationEffects
      operationEffects = []
      for effect in effects { effect() }
      return result
    } catch {
      root = rootBefore
      operationEffects = []
      for change in journal.reversed() { put(change.before, at: change.id) }
      throw error
    }
  }

  /// Makes all changes durable. The removals are those that this commit holds.
  ///
  /// Where the disk is full, nothing is lost: the changes stay in memory, and the commit can be made again. After any
  /// other failure nobody can know what is stored, and the vault must be opened again.
  func commit() throws -> (root: CommittedRoot, removals: [PendingRemoval]) {
    try requireUsable()
    let changes = buffer.map { StoredRows.Change(id: $0.key, record: $0.value.record) }.sorted { left, right in
      // In the order of the tables' trees.
      left.id.kind.table != right.id.kind.table
        ? left.id.kind.table.rawValue < right.id.kind.table.rawValue : left.id.key < right.id.key
    }
    do {
      try stored.commit(changes, numbers: root)
    } catch {
      if VaultError.wrapping(error) != .full { abandon() }
      throw error
    }
    root = stored.root
    for change in changes {
      if let record = change.record, change.id.kind.isCached {
        cache.insert(record, change.id, cost: record.cost)
      } else {
        cache.remove(change.id)
      }
      listed.didCommit(change.id, change.record)
    }
    buffer.removeAll(keepingCapacity: true)
    bufferedKeys.removeAll(keepingCapacity: true)
    bufferedBytes = 0
    operationCount = 0
    defer { removals = [] }
    return (committed, removals)
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
    buffer = [:]
    bufferedKeys = [:]
    bufferedBytes = 0
    removals = []
  }

  /// Ends every use of the connection. What was not committed is lost.
  func close() {
    abandon()
    stored.close()
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
    guard try stored.contains(kind, key) else { return buffer(nil, at: id) }
    buffer(.removed, at: id)
  }

  /// At most about `limit` opened rows whose keys begin with `prefix`, ascending from after `last` on; none where there
  /// are no more.
  func rows(_ kind: RecordKind, prefix: RowPrefix, after last: RowKey?, limit: Int) throws -> [(RowKey, [UInt8])] {
    var last = last
    while true {
      let keys = try stored.keys(kind, prefix: prefix, after: last, limit: limit)
      let isEnd = keys.count < limit
      // Changed rows lie between the stored ones.
      let changed = bufferedKeys[RowFamily(kind: kind, prefix: prefix.high)]?.filter { key in
        (last.map { $0 < key } ?? true) && (isEnd || keys.last.map { key <= $0 } ?? false)
      }
      var values = try keys.last.map { try stored.values(kind, after: last, through: $0, count: keys.count) } ?? [:]
      for key in changed ?? [] { values[key] = buffer[RowID(kind: kind, key: key)]?.record?.encoded }
      if isEnd || !values.isEmpty { return values.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
      last = keys.last
    }
  }

  // MARK: Listing

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

  /// At most about `limit` rows of names whose keys begin with `prefix`, ascending from after `last` on; none where there
  /// are no more.
  func entryRows(
    of parent: InodeNumber, prefix: RowPrefix, after last: RowKey?, limit: Int
  ) throws -> [(key: RowKey, entries: [Entry])] {
    let keys = try stored.keys(.entry, prefix: prefix, after: last, limit: limit)
    // Changed names lie between the stored ones, and are few or not worth remembering.
    if keys.isEmpty || bufferedKeys[RowFamily(kind: .entry, prefix: prefix.high)]?.isEmpty == false {
      return try rows(.entry, prefix: prefix, after: last, limit: limit).map {
        ($0.0, try Entry.decode($0.1, parent: parent))
      }
    }
    let known = keys.map { listed.entries($0) }
    let missingCount = known.count { $0 == nil }
    if missingCount == 0 { return zip(keys, known).map { ($0, $1 ?? []) } }
    let values =
      missingCount > keys.count / 2
      ? try stored.values(.entry, after: last, through: keys[keys.count - 1], count: keys.count) : [:]
    return try zip(keys, known).map { key, known in
      if let known { return (key, known) }
      guard let bytes = try values[key] ?? stored.value(.entry, key) else { throw MalformedBytes() }
      let entries = try Entry.decode(bytes, parent: parent)
      listed.insert(entries, key)
      return (key, entries)
    }
  }

  /// What a listing showed of a row of names, where it still stands.
  func listedEntries(at key: RowKey) -> [Entry]? {
    buffer[RowID(kind: .entry, key: key)] == nil ? listed.entries(key) : nil
  }

  /// An inode as its record has it, often without a look at the record.
  func nodeIfPresent(_ number: InodeNumber) throws -> ListedNode? {
    let id = RowID(kind: .inode, key: rowKeys.inode(number))
    let isChanged = buffer[id] != nil
    if !isChanged, let known = listed.node(id.key) { return known }
    guard let node = try inodeIfPresent(number).map({ ListedNode($0) }) else { return nil }
    if !isChanged { listed.insert(node, id.key) }
    return node
  }

  /// Reads everything anew from here on: for ``Index/forgetOpened()``.
  func forgetOpened() {
    cache = GenerationCache(limit: cache.limit)
    listed = ListedRows(limit: listed.limit)
    // What has changed was verified before, and is to be committed by that.
    let needed = Set(buffer.keys.map(\.key.bucket))
    stored.forgetVerified { needed.contains($0) }
  }

  // MARK: Inodes

  func inode(_ number: InodeNumber) throws -> Inode {
    guard let inode = try inodeIfPresent(number) else { throw VaultError.damaged(what: "an inode is missing") }
    return inode
  }

  func inodeIfPresent(_ number: InodeNumber) throws -> Inode? {
    let id = RowID(kind: .inode, key: rowKeys.inode(number))
    switch try record(id) {
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

  func store(_ inode: Inode) throws { try set(.inode(inode), RowID(kind: .inode, key: rowKeys.inode(inode.number))) }

  // MARK: Buffer

  private func record(_ id: RowID) throws -> Record? {
    if let changed = buffer[id] { return changed.record }
    if let known = cache.find(id) { return known }
    guard let bytes = try stored.value(id.kind, id.key) else { return nil }
    if id.kind.isCached { cache.insert(.bytes(bytes), id, cost: Record.bytes(bytes).cost) }
    return .bytes(bytes)
  }

  private func set(_ record: Record, _ id: RowID) throws {
    try requireOperation(id)
    buffer(.record(record), at: id)
  }

  /// A bucket that does not fit its sum fails the operation that would write there, not the commit of many.
  private func requireOperation(_ id: RowID) throws { try stored.verify(id.key.bucket) }

  private func buffer(_ row: BufferedRow?, at id: RowID) {
    journal.append((id, buffer[id]))
    put(row, at: id)
  }

  private func put(_ row: BufferedRow?, at id: RowID) {
    let before = buffer[id]
    buffer[id] = row
    bufferedBytes += (row?.cost ?? 0) - (before?.cost ?? 0)
    // An inode has one row, and its prefix no other.
    guard id.kind != .inode, (row == nil) != (before == nil) else { return }
    let family = RowFamily(kind: id.kind, prefix: id.key.high)
    if row == nil {
      bufferedKeys[family]?.remove(id.key)
    } else {
      bufferedKeys[family, default: []].insert(id.key)
    }
  }
}

/// Rows of one kind whose keys begin alike.
private struct RowFamily: Hashable {
  let kind: RecordKind
  let prefix: UInt64
}

extension RecordKind {
  /// Whether opened records are worth keeping: map pages have a cache of their own, with their files.
  fileprivate var isCached: Bool { self != .map }
}
