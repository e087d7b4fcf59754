internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Foundation
internal import GRDB
internal import Synchronization

/// SQLite's side of the index: the only place that reads and writes rows, and holds what it reads against what is expected.
///
/// Only one thread uses SQLite at a time (``ConnectionTurns``). It may take the index's lock, and whoever has that must not wait
/// for SQLite: so that nobody waits for a disk, or for the transaction of a commit, who finds what they need in memory. Who
/// does not waits for some rows of a commit, unless they are the commit's own.
///
/// A small commit is stored without the connection: the journal has a lock of its own, so that nobody who reads waits for its disk, unless
/// somebody who has the connection is about to bring all of the journal to SQLite.
/// Whoever takes several of the three takes the connection first, then the journal's lock, then the index's.
final class IndexTables {
  let turns = ConnectionTurns()
  /// What the transaction that writes a commit changes, while it does.
  private var underWay: RowsUnderWay?
  let statements: IndexStatements
  /// Little room is left on the disk: the log shall take as little as it can. For the next commit.
  let keepsLogShort = Atomic(false)
  /// Bytes by which the index may have to grow to take what the log holds. Where others may fill the disk at any time this must be
  /// so little that it finds room with what is kept for removals: the log cannot begin anew before.
  let growthLimit = Atomic(Int.max)
  private var logIsShort = false
  private let freePages = Atomic(0)
  private let logPages = Atomic(0)
  let hasher: RowHasher
  let sealer: RecordSealer
  /// The index's.
  let lock: NSLock
  /// Taken by who commits, or brings to SQLite what is in the journal, and held until it is stored.
  private let journalLock = NSLock()
  /// Touched only under `journalLock`, once it is set, and by tests.
  private(set) var journal: CommitJournal?
  /// What the journal has and SQLite has not. Changed under `journalLock`, by who has the connection or `lock` as well: read by who
  /// has both of these, or `journalLock`.
  private var journaled = JournaledRows()
  /// What readers look at of `journaled`, that of a copy below that of who reads in its midst. Used by who has the connection, and changed
  /// under `lock`: while it is here, `journaled` is changed in a copy, and is changed in place only behind the lock that a reader has given
  /// back. To count its references would be enough for Swift, and is nothing that ThreadSanitizer can see.
  private var shown: [JournaledRows] = []
  /// The last one: SQLite's or the journal's.
  private var lastCommit: [UInt8] = []
  /// Under whose key SQLite's root was sealed last.
  private var rootSalt: UInt32 = 0
  private var writeCount = 0
  /// A write has failed, and nobody knows what is stored.
  private var isUnsure = false
  private var isClosed = false
  /// Commits of an opening that SQLite gets at once: those of a program that opens a vault for one change make no journal. At
  /// least one, which brings the opening's salt; tests have no more.
  var commitsBeforeJournal = 4

  init(_ db: Database, keys: UnlockedKeys, vault: VaultID, lock: NSLock) throws {
    self.lock = lock
    statements = try IndexStatements(db)
    hasher = RowHasher(metadataKey: keys.metadata)
    sealer = RecordSealer(metadataKey: keys.metadata, vault: vault)
  }

  /// Runs `body` while nobody else uses the connection. Everything below is called within, but for ``addToJournal(_:publish:)``.
  ///
  /// - Parameter lettingReadersIn: in the midst of a commit, or of a copy. Whoever holds the index's lock must not.
  func using<Result>(lettingReadersIn: Bool = false, _ body: () throws -> Result) rethrows -> Result {
    try turns.take(lettingReadersIn: lettingReadersIn, body)
  }

  /// As `using`, for who is about to ask for `reads` and nothing else: perhaps on another thread, while it writes something
  /// else. `body` is told whether it reads within a transaction. What fails then says nothing, for the failure may be the writer's: as
  /// where a page is read and there is no room for another that must make way for it.
  func using(for reads: [StoredRead], _ body: @escaping (_ isWithin: Bool) -> Void) {
    turns.read(
      where: { [self] in reads.count <= Self.readsLetIn && !reads.contains(where: isUnderWay) },
      { [self] isLetIn in body(isLetIn && underWay != nil && statements.isInTransaction) })
  }

  /// So much at most is read for one who is let in: whoever wants more waits until nobody waits for them.
  private static let readsLetIn = 64

  /// Whether the transaction that is under way changes what `read` asks for. Called by who has the connection.
  func isUnderWay(_ read: StoredRead) -> Bool { underWay?.touches(read) ?? false }

  /// Called between two steps of a copy.
  func letReadersIn() { _ = turns.letReadersIn() }

  /// Called between two rows of a transaction. Throws ``TransactionEnded``.
  private func letReadersIn(_ time: inout ReadersTime) throws {
    willLetReadersIn()
    if turns.letReadersIn(while: { time.isLeft() }), !statements.isInTransaction { throw TransactionEnded() }
    time.didLetIn()
  }

  /// A reader's failure has ended the transaction that let it in. What came next would be stored row by row.
  private struct TransactionEnded: Error {}

  /// Stores rows in one transaction, which lets readers in; where that ends it, in one that does not.
  private func store(lettingReadersIn transaction: (_ between: () throws -> Void) throws -> Void) throws {
    var time = ReadersTime(now: now)
    do {
      try transaction { try letReadersIn(&time) }
    } catch is TransactionEnded {
      try transaction {}
    }
  }

  /// As of ``ReadersTime``. Tests have one that stands still, and so no end of turns.
  var now: () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }

  /// Called by tests' commits where readers could be let in.
  var willLetReadersIn: () -> Void = {}

  /// Ends every use of the connection. What cannot be brought from the journal to SQLite stays there, from where the next opening
  /// has it.
  func close() {
    journalLock.withLock {
      if isClosed { return }
      isClosed = true
      try? bringJournalToSQLite()
      if journaled.isEmpty, writeCount > 0, !isUnsure { journal?.remove() }
      statements.close()
    }
  }

  /// Brings to SQLite what is in the journal, but not what was only read. Where the disk is full it stays there; after any other
  /// failure nobody knows what SQLite has, and nothing more is written: entries that are added to the journal then might lead on
  /// from a commit that SQLite does not have any more.
  func emptyJournal() throws { try journalLock.withLock { try bringJournalToSQLite() } }

  private func bringJournalToSQLite() throws {
    guard writeCount > 0, !isUnsure else { return }
    try noting { try storeJournaled() }
  }

  /// Runs `body`, which writes; notes where it leaves nobody knowing what is stored.
  private func noting(_ body: () throws -> Void) throws {
    guard !isUnsure else { throw VaultError.needsReopening }
    do {
      try body()
    } catch {
      if VaultError.wrapping(error) != .full { isUnsure = true }
      throw error
    }
  }

  // MARK: Reading

  /// The last commit's root. Throws `damaged` where SQLite's is not what a commit of this vault wrote.
  func readRoot() throws -> RootRecord {
    let root = try journaled.root ?? storedRoot()
    lastCommit = root.commit
    return root
  }

  /// As SQLite has it.
  private func storedRoot() throws -> RootRecord {
    guard let sealed = try statements.root.first(body: { Array(try $0[0]) }) else {
      throw VaultError.damaged(what: "the root record")
    }
    do {
      let plaintext = try Self.rootRow.withUnsafeBytes { row in
        try sealed.withUnsafeBytes { try open($0, kind: .root, row: row) }
      }
      let root = try RootRecord(decoding: plaintext)
      rootSalt = try sealed.withUnsafeBytes { try RecordSealer.saltIndex(of: $0) }
      return root
    } catch let error as DatabaseError {
      throw error
    } catch {
      throw VaultError.damaged(what: "the root record")
    }
  }

  /// The caller goes on to read what the journal has now, without the index's lock, until ``endReading()``. Called under it.
  func beginReading() { shown.append(journaled) }

  /// Called under the index's lock.
  func endReading() { shown.removeLast() }

  /// What is expected of it is what it was at ``beginReading()``, or what it is, for who has the index's lock.
  func answer(_ read: StoredRead, _ expected: StoredRead.Expectation) throws -> StoredRead.Answer {
    let journaled = shown.last ?? journaled
    return switch (read, expected) {
    case (.page(let page), .page(let tag)): .page(try readPage(page, tag: tag, journaled))
    case (.bucket(let index), .bucket(let bucket)): .bucket(try scan(index, expecting: bucket, journaled))
    case (.value(let id), .value(let tag)): .value(try value(id, tag, journaled))
    case (.values(let kind, let first, let last, _), .values(let rows)):
      .values(try values(kind, after: first, through: last, expecting: rows, journaled))
    default: preconditionFailure("what is expected of another read")
    }
  }

  private func value(_ id: RowID, _ tag: RowTag, _ journaled: JournaledRows) throws -> [UInt8] {
    let found = try id.key.withBytes { row in
      func opened(_ value: UnsafeRawBufferPointer) throws -> [UInt8] {
        guard RowTag(endOf: value) == tag else { throw Self.disorder }
        return try open(value, kind: id.kind, row: row)
      }
      guard let journaled = journaled.row(id.kind.table, id.key) else {
        return try statements[id.kind.table].value.first(.bytes(row)) { try opened($0[0]) }
      }
      return try journaled.value.withUnsafeBytes { try opened($0) }
    }
    guard let found else { throw Self.disorder }
    return found
  }

  private func values(
    _ kind: RecordKind, after first: RowKey?, through last: RowKey, expecting expected: [SortedRows.Row],
    _ journaled: JournaledRows
  ) throws -> [RowKey: [UInt8]] {
    let lower = first?.bytes ?? last.high.bigEndianBytes
    var result: [RowKey: [UInt8]] = [:]
    var position = 0
    try lower.withUnsafeBytes { lower in
      try last.withBytes { upper in
        let logged = journaled.rows(kind.table) { key in
          key.high == last.high && key <= last && (first.map { $0 < key } ?? true)
        }
        try forEach(statements[kind.table].scan, lower, upper, logged) { key, value in
          guard position < expected.count, expected[position].key == key,
            RowTag(endOf: value) == expected[position].tag
          else { throw Self.disorder }
          position += 1
          result[key] = try key.withBytes { try open(value, kind: kind, row: $0) }
        }
      }
    }
    guard position == expected.count else { throw Self.disorder }
    return result
  }

  /// The buckets of a page as it was sealed last; it must carry the tag that the root names.
  private func readPage(_ page: Int, tag: [UInt8], _ journaled: JournaledRows) throws -> [Bucket] {
    let sealed = try journaled.pages[page] ?? statements.bucket.first(.integer(Int64(page))) { Array(try $0[0]) }
    guard let sealed, equalInConstantTime(Array(sealed.suffix(Sealing.tagByteCount)), tag),
      let opened = try? UInt32(page).bigEndianBytes.withUnsafeBytes({ row in
        try sealed.withUnsafeBytes { try open($0, kind: .bucket, row: row) }
      })
    else { throw VaultError.damagedBuckets(page: page) }
    return try Bucket.decodePage(opened)
  }

  /// Compares a bucket's rows with what must be there.
  private func scan(_ index: Int, expecting expected: Bucket, _ journaled: JournaledRows) throws -> VerifiedRows.Scan {
    var scan = VerifiedRows.Scan()
    var found = Bucket()
    let shift = UInt64(64 - VaultFormat.bucketBits)
    let lower = (UInt64(index) << shift).bigEndianBytes
    let isLast = index + 1 == VaultFormat.bucketCount
    // A shorter key sorts before every key that it begins, and 17 bytes of ones behind every key of 16.
    let upper =
      isLast ? [UInt8](repeating: 0xff, count: RowKey.byteCount + 1) : (UInt64(index + 1) << shift).bigEndianBytes
    for table in RecordTable.allCases {
      try lower.withUnsafeBytes { lower in
        try upper.withUnsafeBytes { upper in
          let logged = journaled.rows(table) { $0.bucket == index }
          try forEach(statements[table].tags, lower, upper, logged) { key, value in
            // Strictly ascending, so that a row that a broken tree shows twice does not cancel itself out.
            // No more than there must be, so that rows that somebody added cost neither memory nor time.
            guard found.count < expected.count else { throw VaultError.damagedRows(bucket: index) }
            guard let tag = RowTag(endOf: value), key.bucket == index, scan.append(tag, table, key) else {
              throw Self.disorder
            }
            found.insert(hasher.hash(table, key, tag))
          }
        }
      }
    }
    guard found == expected else { throw VaultError.damagedRows(bucket: index) }
    return scan
  }

  /// Calls `body` with a table's rows between two keys, ascending: SQLite's, and in their place what is in the journal.
  ///
  /// - Parameter journaled: between the same keys, ascending.
  private func forEach(
    _ statement: RowStatement, _ lower: UnsafeRawBufferPointer, _ upper: UnsafeRawBufferPointer,
    _ journaled: [RowChange], _ body: (RowKey, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    var next = 0
    func passJournaled(before key: RowKey?) throws {
      while next < journaled.count, key.map({ journaled[next].id.key < $0 }) ?? true {
        let row = journaled[next]
        next += 1
        if !row.value.isEmpty { try row.value.withUnsafeBytes { try body(row.id.key, $0) } }
      }
    }
    try statement.forEach(.bytes(lower), .bytes(upper)) { columns in
      guard let key = RowKey(try columns[0]) else { throw Self.disorder }
      try passJournaled(before: key)
      if next < journaled.count, journaled[next].id.key == key { return }
      try body(key, try columns[1])
    }
    try passJournaled(before: nil)
  }

  private static let disorder = VaultError.damaged(what: "the order of the index's rows")

  static let rootRow: [UInt8] = [1]

  private func open(_ value: UnsafeRawBufferPointer, kind: RecordKind, row: UnsafeRawBufferPointer) throws -> [UInt8] {
    try recordKey(RecordSealer.saltIndex(of: value)).open(value, kind: kind, row: row)
  }

  private func recordKey(_ index: UInt32) throws -> RecordKey {
    if let known = sealer.key(index) { return known }
    return try sealer.key(index, stored: statements.salt.first(.integer(Int64(index))) { Array(try $0[0]) })
  }

  // MARK: Writing

  /// Makes a small commit durable in the journal; `false` where it must go to SQLite. Where it throws, nobody knows which is the last
  /// one, and nothing more is written.
  ///
  /// The caller has neither the connection nor the index's lock, and commits are made one after the other.
  /// - Parameter publish: called once the commit is stored, under the index's lock, before anybody can read what it has changed.
  func addToJournal(_ commit: SealedCommit, publish: () -> Void) throws -> Bool {
    try journalLock.withLock {
      // Where little room is left, what was kept for removals must do for all that a commit writes.
      guard let journal, !logIsShort, !keepsLogShort.load(ordering: .relaxed), writeCount >= commitsBeforeJournal,
        let entry = JournalEntry(commit), entry.byteCount <= journal.room
      else { return false }
      var isStored = false
      try noting {
        try journal.requireIndex()
        isStored = try journal.append(entry.encoded(), after: lastCommit)
      }
      guard isStored else { return false }
      noteWritten(commit)
      lock.withLock {
        journaled.take(entry, root: commit.root)
        publish()
      }
      return true
    }
  }

  /// Makes a commit durable in SQLite, with all that is in the journal. Where it throws, the last one is stored.
  func write(_ commit: SealedCommit) throws {
    try journalLock.withLock {
      try noting {
        try journal?.requireIndex()
        try adjustLog()
        try store(commit)
        noteWritten(commit)
      }
    }
  }

  private func noteWritten(_ commit: SealedCommit) {
    lastCommit = commit.root.commit
    writeCount += 1
  }

  private func store(_ commit: SealedCommit) throws {
    let changes = commit.changes.lazy.map(\.row)
    underWay = RowsUnderWay(commit)
    defer { underWay = nil }
    // One after the other, each with the room of the log: together they may need more than was kept for removals.
    if logIsShort { try storeJournaled() }
    let (root, salt) = try commit.sealedRoot()
    if journaled.isEmpty {
      try store { between in
        try statements.store(
          changes, pages: commit.sealedPages, salt: commit.newSalt, root: root, between: between)
      }
    } else {
      var rows = journaled
      rows.take(changes, pages: commit.sealedPages, root: commit.root)
      try store { between in try statements.store(rows, salt: commit.newSalt, root: root, between: between) }
    }
    rootSalt = salt
    noteStored()
  }

  private func storeJournaled() throws {
    guard let last = journaled.root else { return }
    if logIsShort, var root = try? storedRoot(), let entries = try? journal?.entries(after: root.commit),
      entries.last?.root.commit == lastCommit
    {
      // Together they may change more pages than there is room for, and each of them is a commit.
      for (position, entry) in entries.enumerated() {
        var rows = JournaledRows()
        try take(entry, after: &root, into: &rows)
        try statements.store(rows, root: sealed(root))
        var left = JournaledRows()
        var next = root
        for entry in entries[(position + 1)...] { try take(entry, after: &next, into: &left) }
        journaled = left
        copyLongLog()
        emptyLog(growingBy: Ballast.byteCount / 2)
      }
    } else {
      try statements.store(journaled, root: sealed(last))
    }
    noteStored()
  }

  /// - Parameter root: that of the commit before; becomes the entry's.
  private func take(_ entry: JournalEntry, after root: inout RootRecord, into rows: inout JournaledRows) throws {
    do { try root.apply(entry.root, pages: entry.pages) } catch { throw CommitJournal.damaged }
    rows.take(entry, root: root)
  }

  /// A root of the journal's for SQLite, under the key of a salt that SQLite has: the first commit of each opening brings its own,
  /// and goes there at once.
  private func sealed(_ root: RootRecord) throws -> [UInt8] { try recordKey(rootSalt).seal(root) }

  private func noteStored() {
    copyLongLog()
    journaled = JournaledRows()
    if logIsShort { journal?.remove() } else { journal?.restart() }
    if let growth = try? growth(), growth > growthLimit.load(ordering: .relaxed) { emptyLog(growingBy: .max) }
    noteFreePages()
  }

  /// Stores what the journal had at ``beginReading()`` in another index, which has the rows that SQLite has here.
  func storeJournaled(in db: Database) throws {
    guard let journaled = shown.last, let root = journaled.root else { return }
    let statements = try IndexStatements(db)
    defer { statements.close() }
    try statements.store(journaled, root: sealed(root))
  }

  /// Takes what a journal has beyond SQLite's last commit, and adds small commits to it from then on. Called before anything is
  /// read.
  func readJournal(_ journal: CommitJournal) throws {
    var root = try readRoot()
    for entry in try journal.entries(after: root.commit) { try take(entry, after: &root, into: &journaled) }
    self.journal = journal
  }

  /// Bytes that rows can take without more room on the disk: in the index, and in its log on the way there. What they were after
  /// the last commit where little room is left, and none elsewhere.
  var freeByteCount: Int {
    min(freePages.load(ordering: .relaxed), logPages.load(ordering: .relaxed)) * IndexDatabase.pageSize
  }

  /// Gives the room of the log back, as far as the index has room for what it holds. Where it has none, the log stays.
  func cutLog() { _ = try? statements.cutLog.first { _ in } }

  /// Copies the log into the index, and keeps the log's own room for what comes next: on a full disk others would take it at
  /// once. Not where the index would have to grow by more than `limit` bytes: it would take the room, and lack the rest.
  func emptyLog(growingBy limit: Int) {
    guard let growth = try? growth(), growth <= limit else { return }
    _ = try? statements.emptyLog.first { _ in }
  }

  /// Copies a log that has become long into the index, once the commit that made it so is stored: who waits to read has their turn
  /// between.
  private func copyLongLog() {
    guard statements.logPageCount >= (logIsShort ? Self.logLength.short : Self.logLength.usual) else { return }
    _ = turns.letReadersIn()
    _ = try? statements.copyLog.first { _ in }
  }

  /// Bytes by which the index has to grow to take what the log holds.
  private func growth() throws -> Int {
    try statements.pageCount() * IndexDatabase.pageSize - statements.byteCount
  }

  /// Pages that the log has when it is copied into the index: SQLite's number, and a MiB where little room is left.
  private static let logLength = (usual: 1000, short: 128)

  private func adjustLog() throws {
    let isShort = keepsLogShort.load(ordering: .relaxed)
    guard isShort != logIsShort else { return }
    logIsShort = isShort
    guard isShort else { return }
    // While the log has its room, which others would take.
    try storeJournaled()
    cutLog()
  }

  private func noteFreePages() {
    let isAsked = logIsShort
    freePages.store(isAsked ? (try? statements.freePageCount()) ?? 0 : 0, ordering: .relaxed)
    logPages.store(isAsked ? statements.logByteCount / IndexDatabase.pageSize : 0, ordering: .relaxed)
  }
}

extension VaultError {
  static func damagedRows(bucket: Int) -> VaultError { .damaged(what: "rows of the index's bucket \(bucket)") }
  static func damagedBuckets(page: Int) -> VaultError { .damaged(what: "the index's bucket page \(page)") }
}
