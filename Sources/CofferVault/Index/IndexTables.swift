internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Foundation
internal import GRDB
internal import Synchronization

/// SQLite's side of the index: the only place that writes rows, and says who reads them.
///
/// Whoever stores something has the index's own connection (``using(_:)``), and whoever reads has one of ``IndexReaders``, or this one as
/// long as nobody would have had to wait for it. They may take the index's lock, and whoever has that must not wait for SQLite: so that
/// nobody waits for a disk who finds what they need in memory, and nobody for another's disk or commit who does not.
///
/// A small commit is stored without the connection: the journal has a lock of its own.
/// Whoever takes several of these takes the index's own connection first, then the journal's lock, a reader's connection, and the index's lock.
final class IndexTables {
  private let connection = NSLock()
  let readers: IndexReaders
  /// Reads through the index's own connection.
  private let reader: RowReader
  private let statements: WritingStatements
  private let compilation: CompilationGuard
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
  /// What the journal has and SQLite has not. Changed by who has `journalLock` and `lock`.
  private var journaled = JournaledRows()
  /// The last one: SQLite's or the journal's.
  private var lastCommit: [UInt8] = []
  /// SQLite's last one. For who has the index's own connection.
  private(set) var storedCommit: [UInt8] = []
  /// Under whose key SQLite's root was sealed last.
  private var rootSalt: UInt32 = 0
  private var writeCount = 0
  /// A write has failed, and nobody knows what is stored.
  private var isUnsure = false
  private var isClosed = false
  private var rules = Rules()

  /// By which commits go, and what tests change.
  struct Rules {
    /// Commits of an opening that SQLite gets at once: those of a program that opens a vault for one change make no journal. At
    /// least one, which brings the opening's salt; tests have no more.
    var commitsBeforeJournal = 4
    /// Pages that the log may have because of somebody who reads: 32 MiB. Tests have fewer.
    var mostLogPages = 4000
    /// Called by tests' commits in SQLite, which have `journalLock`: in the midst of the transaction, once it is stored and nobody
    /// knows, and when all know.
    var willCommit: () -> Void = {}
    var willPublish: () -> Void = {}
    var didPublish: () -> Void = {}
  }

  /// Beside commits that the vault makes by itself.
  func changeRules(_ body: (inout Rules) -> Void) { journalLock.withLock { body(&rules) } }

  /// - Parameter openReader: opens one more connection to the same index.
  init(
    _ db: Database, keys: UnlockedKeys, vault: VaultID, lock: NSLock,
    openReader: @escaping (IndexDatabase.Memory) throws -> DatabaseQueue
  ) throws {
    self.lock = lock
    let hasher = RowHasher(metadataKey: keys.metadata)
    let sealer = RecordSealer(metadataKey: keys.metadata, vault: vault)
    (self.hasher, self.sealer) = (hasher, sealer)
    let identity = try IndexDatabase.Identity(db)
    (compilation, (statements, reader)) = try CompilationGuard.around(db) {
      let statements = try WritingStatements(db)
      do {
        return (statements, try RowReader(db, hasher, sealer))
      } catch {
        statements.close()
        throw error
      }
    }
    readers = IndexReaders { memory in
      try IndexReaders.Reader(openReader(memory)) { db in
        // Where somebody has put another file at the path, it is not this index.
        guard try IndexDatabase.Identity(db) == identity else { throw VaultError.damaged(what: VaultFormat.index) }
        return try RowReader(db, hasher, sealer)
      }
    }
  }

  /// Runs `body` while nobody else uses the index's own connection. What reads and writes below is called within, but for
  /// ``addToJournal(_:publish:)``, and ``reading(_:)``.
  func using<Result>(_ body: (RowReader) throws -> Result) rethrows -> Result {
    try connection.withLock { try body(reader) }
  }

  /// Runs `body` with a connection that nobody else uses, and again where it needed that nothing is stored meanwhile.
  ///
  /// - Parameter body: is told whether nothing can be, and returns whether it needs that.
  func reading(_ body: (_ reader: RowReader, _ isAlone: Bool) -> Bool) {
    if !readers.areWanted {
      if connection.try() {
        defer { connection.unlock() }
        _ = body(reader, true)
        return
      }
      readers.want()
    }
    var isDone = false
    // What was stored in between is known a moment after. Whoever stores has the other connection for longer than that.
    for _ in 0..<Self.readingLimit {
      guard readers.use({ isDone = !body($0, false) }) else { break }
      if isDone { return }
    }
    using { _ = body($0, true) }
  }

  /// How often it is tried beside who stores something.
  private static let readingLimit = 3

  /// For tests.
  var isInUse: Bool {
    guard connection.try() else { return true }
    connection.unlock()
    return false
  }

  /// Ends every use of the connection. What cannot be brought from the journal to SQLite stays there, from where the next opening
  /// has it.
  func close() {
    readers.close()
    journalLock.withLock {
      if isClosed { return }
      isClosed = true
      try? bringJournalToSQLite()
      if journaled.isEmpty, writeCount > 0, !isUnsure, isInPlace { journal?.remove() }
      statements.close()
      reader.close()
      compilation.end()
    }
  }

  /// Whether the index has its name. Where another file has it, the log beside that is all that it may have of the last commits.
  private var isInPlace: Bool {
    do { try journal?.requireIndex() } catch { return false }
    return true
  }

  /// Brings to SQLite what is in the journal, but not what was only read. Where the disk is full it stays there; after any other
  /// failure nobody knows what SQLite has, and nothing more is written: entries that are added to the journal then might lead on
  /// from a commit that SQLite does not have any more.
  func emptyJournal() throws { try journalLock.withLock { try bringJournalToSQLite() } }

  private func bringJournalToSQLite() throws {
    guard writeCount > 0, !isUnsure else { return }
    if journaled.isEmpty { return }
    // Else the journal is where it is kept.
    try journal?.requireIndex()
    try noting { try alone(if: logIsShort) { try storeJournaled() } }
  }

  /// Whether the log may grow while somebody reads for long.
  var hasAmpleRoom: Bool {
    !keepsLogShort.load(ordering: .relaxed) && growthLimit.load(ordering: .relaxed) == .max
  }

  /// Runs `body`, which writes; while nobody reads, where the log is to stay short: whoever does keeps a part of it from being copied into
  /// the index, and so from being written over.
  private func alone(if logIsShort: Bool, _ body: () throws -> Void) rethrows {
    if logIsShort { try readers.pausing(body) } else { try body() }
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

  /// That of a copy.
  func readRoot(of copy: Database) throws -> RootRecord {
    let reader = try RowReader(copy, hasher, sealer)
    defer { reader.close() }
    return try reader.root().root
  }

  /// As SQLite has it.
  private func storedRoot() throws -> RootRecord {
    let (root, salt) = try reader.root()
    rootSalt = salt
    storedCommit = root.commit
    return root
  }

  /// What the journal has, for who reads without the index's lock.
  ///
  /// While somebody has it, `journaled` is changed in a copy, and is changed in place only behind the lock under which it was let go. To
  /// count its references would be enough for Swift, and is nothing that ThreadSanitizer can see.
  final class ShownJournal {
    fileprivate(set) var rows: JournaledRows

    fileprivate init(_ rows: JournaledRows) { self.rows = rows }
  }

  /// The caller goes on to read what the journal has now, until ``endReading(_:)``. Called under the index's lock.
  func beginReading() -> ShownJournal { ShownJournal(journaled) }

  /// Called under the index's lock.
  func endReading(_ shown: ShownJournal) { shown.rows = JournaledRows() }

  /// Through the index's own connection, for who has that and the index's lock.
  func answer(_ read: StoredRead, _ expected: StoredRead.Expectation) throws -> StoredRead.Answer {
    try reader.answer(read, expected, journaled)
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
      guard let journal, !logIsShort, !keepsLogShort.load(ordering: .relaxed), writeCount >= rules.commitsBeforeJournal,
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
  ///
  /// - Parameter publish: as that of ``addToJournal(_:publish:)``. Whoever reads what the commit has changed between the end of its
  ///   transaction and this does not find what is expected, and looks again when it has the connection.
  func write(_ commit: SealedCommit, publish: () -> Void) throws {
    try journalLock.withLock {
      try noting {
        let isShort = keepsLogShort.load(ordering: .relaxed)
        try alone(if: logIsShort || isShort) {
          try journal?.requireIndex()
          try keepLog(short: isShort)
          try store(commit, publish)
        }
      }
    }
  }

  private func noteWritten(_ commit: SealedCommit) {
    lastCommit = commit.root.commit
    writeCount += 1
  }

  private func store(_ commit: SealedCommit, _ publish: () -> Void) throws {
    let changes = commit.changes.lazy.map(\.row)
    // One after the other, each with the room of the log: together they may need more than was kept for removals.
    if logIsShort { try storeJournaled() }
    let (root, salt) = try commit.sealedRoot()
    if journaled.isEmpty {
      try statements.store(
        changes, pages: commit.sealedPages, salt: commit.newSalt, root: root, willCommit: rules.willCommit)
    } else {
      var rows = journaled
      rows.take(changes, pages: commit.sealedPages, root: commit.root)
      try statements.store(rows, salt: commit.newSalt, root: root, willCommit: rules.willCommit)
    }
    rules.willPublish()
    rootSalt = salt
    noteWritten(commit)
    noteStored(publish)
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
        storedCommit = root.commit
        var left = JournaledRows()
        var next = root
        for entry in entries[(position + 1)...] { try take(entry, after: &next, into: &left) }
        lock.withLock { journaled = left }
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
  func sealed(_ root: RootRecord) throws -> [UInt8] { try reader.recordKey(rootSalt).seal(root) }

  /// - Parameter publish: called before anybody can see that the journal is empty.
  private func noteStored(_ publish: () -> Void = {}) {
    lock.withLock {
      journaled = JournaledRows()
      publish()
    }
    rules.didPublish()
    storedCommit = lastCommit
    copyLongLog()
    if logIsShort { journal?.remove() } else { journal?.restart() }
    if let growth = try? growth(), growth > growthLimit.load(ordering: .relaxed) { emptyLog(growingBy: .max) }
    noteFreePages()
  }

  /// Stores what a journal had at ``beginReading()`` in another index, which has the rows that SQLite had here.
  ///
  /// - Parameter root: the journal's, as ``sealed(_:)`` gave it then.
  static func store(_ shown: ShownJournal, root: [UInt8], in db: Database) throws {
    let statements = try WritingStatements(db)
    defer { statements.close() }
    try statements.store(shown.rows, root: root)
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
  func cutLog() {
    guard isInPlace else { return }
    readers.pausing { _ = try? statements.cutLog.first { _ in } }
  }

  /// Copies the log into the index, and keeps the log's own room for what comes next: on a full disk others would take it at
  /// once. Not where the index would have to grow by more than `limit` bytes: it would take the room, and lack the rest.
  func emptyLog(growingBy limit: Int) {
    guard let growth = try? growth(), growth <= limit, isInPlace else { return }
    readers.pausing { _ = try? statements.emptyLog.first { _ in } }
  }

  /// Copies a log that has become long into the index, once the commit that made it so is stored. What a reader needs of it stays, until
  /// a later commit copies it.
  private func copyLongLog() {
    let pageCount = statements.logPageCount
    guard pageCount >= (logIsShort ? Self.logLength.short : Self.logLength.usual) else { return }
    // It would grow for as long as somebody always reads.
    if pageCount >= rules.mostLogPages { return emptyLog(growingBy: .max) }
    guard isInPlace else { return }
    _ = try? statements.copyLog.first { _ in }
  }

  /// Bytes by which the index has to grow to take what the log holds.
  private func growth() throws -> Int {
    try statements.pageCount() * IndexDatabase.pageSize - statements.byteCount
  }

  /// Pages that the log has when it is copied into the index: SQLite's number, and a MiB where little room is left.
  private static let logLength = (usual: 1000, short: 128)

  private func keepLog(short isShort: Bool) throws {
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
