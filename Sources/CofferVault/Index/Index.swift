internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Foundation
internal import GRDB

/// The sealed rows of a vault, behind one lock.
///
/// Invariants, held between operations:
/// 1. a row that was read or written lies in a bucket that was verified first;
/// 2. the buckets in memory equal the rows in SQLite and in the journal, which are those of the last commit, or of the next where nobody
///    has asked since it was stored; what changed since is in the session's buffer, and what a commit under way is about to store below it;
/// 3. after a commit that failed for another reason than a full disk, nothing more is written until the vault is opened
///    again.
///
/// No operation reads from SQLite under the lock. One that needs what is not in memory is undone and begins anew when that was
/// read, through a connection of its own: so nobody waits for a disk but for what they themselves need from there, and, unless little room
/// is left, only commits wait for commits.
final class Index: Sendable {
  /// The index's own connection. Statements run past the queue, while nobody else uses it (`IndexTables`).
  private let queue: DatabaseQueue
  nonisolated(unsafe) let tables: IndexTables
  /// Taken by who has the connection as well, and never the other way round.
  private let lock = NSLock()
  /// Touched only under `lock`, but to store what a commit has prepared.
  private nonisolated(unsafe) let session: IndexSession

  /// Writes the first root and the first rows of a new vault; returns its first anchor.
  static func create(
    at path: String, keys: UnlockedKeys, vault: VaultID, firstRows: (IndexSession) throws -> Void
  ) throws -> CommittedRoot {
    try IndexDatabase.create(at: path)
    let queue = try IndexDatabase.open(at: path)
    let root = RootRecord(branch: Randomness.bytes(RootRecord.branchByteCount))
    defer { try? queue.close() }
    return try queue.inDatabase { db in
      let tables = try IndexTables(db, keys: keys, vault: vault, lock: NSLock()) { memory in
        try IndexDatabase.openReader(at: path, memory)
      }
      let session = IndexSession(stored: StoredRows(tables, new: root), keys: keys)
      defer { tables.close() }
      try session.operation { try firstRows(session) }
      let commit = try session.beginCommit()
      var rows = StoredRows.ReplacedRows()
      let preparation = try session.prepare(commit, commit.changes.sorted, &rows)
      session.store(preparation, commit)
      return try session.takeOver(commit, preparation)
    }
  }

  init(in folder: VaultFolder, keys: UnlockedKeys, vault: VaultID) throws {
    let path = folder.path + "/" + VaultFormat.index
    queue = try IndexDatabase.open(at: path)
    // The one that SQLite has opened, and the folder's.
    let named = try folder.files.status(of: VaultFormat.index, in: folder.descriptor)
    guard let opened = try folder.files.status(of: path), named?.isSameFile(as: opened) == true,
      queue.inDatabase({ IndexDatabase.isInPlace($0) })
    else { throw VaultError.damaged(what: VaultFormat.index) }
    (tables, session) = try queue.inDatabase { [lock] db in
      let tables = try IndexTables(db, keys: keys, vault: vault, lock: lock) { memory in
        // The path may lead to another vault by now, or somebody may have put another file there: to open that may already change it, and
        // the log beside it.
        guard try folder.files.status(of: path)?.isSameFile(as: opened) == true else {
          throw VaultError.damaged(what: VaultFormat.index)
        }
        return try IndexDatabase.openReader(at: path, memory)
      }
      do {
        // There since the schema was read.
        guard let log = try folder.files.status(of: VaultFormat.indexLog, in: folder.descriptor) else {
          throw VaultError.damaged(what: VaultFormat.indexLog)
        }
        try tables.readJournal(CommitJournal(in: folder, beside: opened, log, metadataKey: keys.metadata, vault: vault))
        let session = IndexSession(stored: try StoredRows(tables), keys: keys)
        session.hasConnection = false
        return (tables, session)
      } catch {
        tables.close()
        throw error
      }
    }
  }

  /// Runs one operation: all of its changes stay, or none. `body` begins anew where it needs what must be read first.
  ///
  /// - Parameter lacksRoom: the operation must not add anything; see ``IndexSession/requireRoom()``.
  func perform<Result>(lacksRoom: Bool = false, _ body: (IndexSession) throws -> Result) throws -> Result {
    try read { session in try session.operation(lacksRoom: lacksRoom) { try body(session) } }
  }

  /// Reads what is stored and what changed since. `body` begins anew where it needs what must be read first.
  ///
  /// - Parameter keepsBuckets: as ``StoredAnswers/keepsBuckets``.
  func read<Result>(keepsBuckets: Bool = true, _ body: (IndexSession) throws -> Result) rethrows -> Result {
    var answers = StoredAnswers(keepsBuckets: keepsBuckets)
    var lastForgetCount: Int?
    for _ in 0..<Self.attemptLimit {
      lock.lock()
      // What was read for it before is not what is to be read anew.
      if lastForgetCount != session.forgetCount { answers = StoredAnswers(keepsBuckets: keepsBuckets) }
      lastForgetCount = session.forgetCount
      session.begin(answers)
      do {
        let result = try body(session)
        if session.missing.isEmpty {
          _ = session.end()
          lock.unlock()
          return result
        }
      } catch {
        guard error is NotInMemory || !session.missing.isEmpty else {
          _ = session.end()
          lock.unlock()
          throw error
        }
      }
      answers = session.end()
      let (missing, ahead, forgetCount) = (session.missing, session.askedAhead, session.forgetCount)
      lock.unlock()
      fetch(missing, ahead, since: forgetCount, for: &answers)
    }
    return try exclusively { try body(session) }
  }

  /// What `body` finds in memory; nil where something must be read first, which it is not.
  func glance<Result>(_ body: (IndexSession) throws -> Result) rethrows -> Result? {
    lock.lock()
    defer { lock.unlock() }
    session.begin(StoredAnswers())
    defer { _ = session.end() }
    do {
      let result = try body(session)
      return session.missing.isEmpty ? result : nil
    } catch is NotInMemory {
      return nil
    }
  }

  /// So often an operation begins anew, before it is given the connection. It needs as many reads one after the other only where
  /// what it needs does not stay in memory for as long.
  private static let attemptLimit = 64

  /// Reads what an operation needs, while the others go on.
  ///
  /// - Parameter ahead: what it is likely to need next, and is read with the others where that is simple.
  private func fetch(
    _ missing: [StoredRead], _ ahead: [StoredRead], since forgetCount: Int, for answers: inout StoredAnswers
  ) {
    tables.reading { reader, isAlone in
      let isComplete = read(missing, by: reader, withFailures: isAlone, since: forgetCount, for: &answers)
      if isComplete { _ = read(ahead, by: reader, withFailures: false, since: forgetCount, for: &answers) }
      return !isComplete
    }
  }

  /// Called by tests' readers, which know what they expect and have not looked yet.
  nonisolated(unsafe) var willAnswer: (_ reads: [StoredRead], _ withFailures: Bool) -> Void = { _, _ in }

  /// - Parameters:
  ///   - withFailures: whether what is not as expected is damaged. Else it may have been changed meanwhile, and is left out.
  ///   - forgetCount: as of ``IndexSession``, before the reader was chosen.
  /// - Returns: whether nothing was left out.
  private func read(
    _ reads: [StoredRead], by reader: RowReader, withFailures: Bool, since forgetCount: Int,
    for answers: inout StoredAnswers
  ) -> Bool {
    let (journal, wanted) = lock.withLock { (tables.beginReading(), session.expectations(of: reads)) }
    willAnswer(wanted.map(\.read), withFailures)
    let outcomes = wanted.map { wanted in
      (
        read: wanted.read, expected: wanted.expected,
        outcome: Swift.Result { try reader.answer(wanted.read, wanted.expected, journal.rows) }
      )
    }
    let told = outcomes.filter { withFailures || (try? $0.outcome.get()) != nil }
    lock.withLock {
      tables.endReading(journal)
      // What was read before everything is to be read anew is not believed any more.
      if session.forgetCount == forgetCount { session.take(told, for: &answers) }
    }
    return told.count == outcomes.count
  }

  /// Runs `body` while nobody else uses the connection or the session.
  private func exclusively<Result>(_ body: () throws -> Result) rethrows -> Result {
    try tables.using { _ in
      lock.lock()
      defer { lock.unlock() }
      session.takeOverIfStored()
      session.begin(StoredAnswers())
      session.hasConnection = true
      defer { session.hasConnection = false }
      return try body()
    }
  }

  /// Takes more memory, for who lists folders and opens files again and again; see ``IndexSession/remember(_:)``. They read beside each
  /// other and whoever stores something.
  func remember(_ count: Int?) {
    tables.readers.forget(wanting: count == nil ? nil : .ample)
    exclusively {
      session.remember(count)
      // Where this fails, memory stays, and nothing else.
      if count == nil { shrinkMemory() }
    }
  }

  private func shrinkMemory() { try? queue.inDatabase { db in try db.execute(sql: "PRAGMA shrink_memory") } }

  /// Reads everything anew from here on, whatever is in memory: for who wants to know what is stored.
  ///
  /// Throws where what waits in the journal cannot be stored; not where the disk is full, for it can be read where it is.
  func forgetOpened() throws {
    try tables.using { _ in
      do { try tables.emptyJournal() } catch  where VaultError.wrapping(error) == .full {}
    }
    tables.readers.shrinkMemory()
    exclusively {
      session.forgetOpened()
      shrinkMemory()
    }
  }

  // MARK: Committing

  typealias Committed = (root: CommittedRoot, removals: [PendingRemoval])

  /// Makes everything so far durable; nil where others did, or nothing changed. A thread that waited while another committed
  /// finds nothing left to do: so commits at the same time become one.
  ///
  /// - Parameters: as those of ``finish(_:prepare:makeRoom:)``.
  func commit(
    prepare: () throws -> Void, makeRoom: (CommitUnderWay, _ isShrinking: Bool) -> Bool = { _, _ in false }
  ) throws -> Committed? {
    var wanted: UInt64?
    while true {
      let step = try read { session -> (commit: CommitUnderWay, isBegun: Bool)? in
        try session.requireUsable()
        // Not more than there was at the call: others may go on to change something.
        let generation = wanted ?? session.newestGeneration
        wanted = generation
        if session.committed.generation >= generation { return nil }
        if let underWay = session.underWay { return (underWay, false) }
        return (try session.beginCommit(), true)
      }
      guard let step else { return nil }
      if step.isBegun { return try finish(step.commit, prepare: prepare, makeRoom: makeRoom) }
      step.commit.wait()
    }
  }

  /// Takes what has gathered out of the buffer, for ``finish(_:prepare:makeRoom:)``, which must follow; nil where a commit is
  /// under way.
  func beginCommit() throws -> CommitUnderWay? {
    try read { session in session.underWay == nil ? try session.beginCommit() : nil }
  }

  /// Brings a commit to its end. No lock of the session's is held while it seals and writes: operations go on, and read what
  /// they need.
  ///
  /// Where the disk is full, nothing is lost: the changes are as before, and can be committed again. After any other failure
  /// of the index's nobody can know what is stored, and the vault must be opened again.
  /// - Parameters:
  ///   - prepare: makes durable what the rows refer to. It runs after the operations whose changes are committed.
  ///   - makeRoom: called where the disk is full, with whether the rows take no more room than before: gives the commit what
  ///     was kept for it, or says that it gets nothing. The commit is tried again before anybody else can begin one.
  func finish(
    _ commit: CommitUnderWay, prepare: () throws -> Void, makeRoom: (CommitUnderWay, _ isShrinking: Bool) -> Bool
  ) throws -> Committed {
    let changes = commit.changes.sorted
    var isPrepared = false
    func attempt() throws -> CommittedRoot {
      isPrepared = false
      try prepare()
      isPrepared = true
      var rows = StoredRows.ReplacedRows()
      let preparation = try read(keepsBuckets: false) { try $0.prepare(commit, changes, &rows) }
      session.store(preparation, commit)
      return try read { try $0.takeOver(commit, preparation) }
    }
    /// Whether there may be room now that was not there for the last attempt.
    func hasMadeRoom(after error: any Error, isFirst: Bool) -> Bool {
      guard VaultError.wrapping(error) == .full else { return false }
      if isFirst, isPrepared {
        // The log may be what takes it.
        emptyLog(growingBy: .max)
        return true
      }
      // Where a look at what is stored fails, the disk is still what has failed the commit, and the changes stay.
      guard let isShrinking = try? read({ try $0.isShrinking(commit) }) else { return false }
      guard makeRoom(commit, isShrinking) else { return false }
      // The log is copied into the index first, which may have lacked room to grow, and then has room for the commit.
      emptyLog(growingBy: Ballast.byteCount / 2)
      return true
    }
    do {
      do {
        return (try attempt(), commit.removals)
      } catch  where hasMadeRoom(after: error, isFirst: true) {}
      do {
        return (try attempt(), commit.removals)
      } catch  where hasMadeRoom(after: error, isFirst: false) {}
      return (try attempt(), commit.removals)
    } catch {
      let wrapped = VaultError.wrapping(error)
      // What was to be prepared cannot be, ever: nobody shall go on to change what can never be stored.
      read { $0.fail(commit, isFinal: isPrepared ? wrapped != .full : wrapped == .needsReopening) }
      throw error
    }
  }

  /// Gives the room of the log back, as far as the index has room for what it holds.
  func cutLog() { tables.using { _ in tables.cutLog() } }
  private func emptyLog(growingBy limit: Int) { tables.using { _ in tables.emptyLog(growingBy: limit) } }

  typealias Copied = (root: CommittedRoot, nextObject: UInt64)

  /// Writes a copy of the last commit's rows to a new file; returns what it holds.
  ///
  /// Nobody waits for it, unless less than 8 GiB are left, the log becomes too long or no connection is to be had: then whoever stores
  /// something in SQLite does.
  /// - Parameter isCancelled: asks nothing of the index.
  func copy(to path: String, isCancelled: () -> Bool) throws -> Copied {
    let copy = try IndexDatabase.openCopy(at: path)
    let copying = try copyBeside(to: copy, isCancelled) ?? copyAlone(to: copy, isCancelled)
    defer { end(copying) }
    try copy.inDatabase { db in
      // Nobody looks at a copy's rows before it is used: it must be one of what was stored last.
      try IndexDatabase.requireSchema(db)
      guard try tables.readRoot(of: db).commit == copying.storedCommit else {
        throw VaultError.damaged(what: "the root record")
      }
      if let root = copying.root { try IndexTables.store(copying.journal, root: root, in: db) }
    }
    try copy.close()
    return copying.copied
  }

  /// A copy being made.
  private struct Copying {
    let copied: Copied
    /// That of SQLite's rows.
    let storedCommit: [UInt8]
    /// What the copy lacks once it has SQLite's rows.
    let journal: IndexTables.ShownJournal
    /// The journal's, sealed under a key whose salt SQLite had then.
    let root: [UInt8]?
  }

  private struct CopyingEnded: Error {}

  /// Copies what SQLite has now through a connection that goes on to see it, whatever is stored meanwhile; nil where there is none to be
  /// had, or somebody must be alone with the index before it is done.
  private func copyBeside(to copy: DatabaseQueue, _ isCancelled: () -> Bool) throws -> Copying? {
    guard tables.hasAmpleRoom else { return nil }
    tables.readers.want()
    // With the index's own connection, so that nothing is stored in SQLite between what is seen there and what is expected there.
    let begun = try tables.using { _ -> (lent: IndexReaders.Lent, copying: Copying)? in
      guard let lent = tables.readers.lend() else { return nil }
      // Where it sees anything else, the index's own connection may not.
      guard (try? lent.rows.begin().commit) == tables.storedCommit else {
        end(lent)
        return nil
      }
      do {
        return (lent, try beginCopying())
      } catch {
        end(lent)
        throw error
      }
    }
    guard let (lent, copying) = begun else { return nil }
    do {
      defer { end(lent) }
      try copyRows(from: lent.queue, to: copy) {
        if tables.readers.mustEnd { throw CopyingEnded() }
        if isCancelled() { throw VaultError.cancelled }
      }
      return copying
    } catch {
      end(copying)
      if error is CopyingEnded { return nil }
      throw error
    }
  }

  /// With the index's own connection.
  private func copyAlone(to copy: DatabaseQueue, _ isCancelled: () -> Bool) throws -> Copying {
    try tables.using { _ in
      let copying = try beginCopying()
      do {
        try copyRows(from: queue, to: copy) { if isCancelled() { throw VaultError.cancelled } }
        return copying
      } catch {
        end(copying)
        throw error
      }
    }
  }

  /// The caller has the index's own connection.
  private func beginCopying() throws -> Copying {
    let (copied, journal) = try lock.withLock {
      try session.requireUsable()
      session.takeOverIfStored()
      return ((session.committed, session.committedNextObject), tables.beginReading())
    }
    do {
      let root = try journal.rows.root.map { try tables.sealed($0) }
      return Copying(copied: copied, storedCommit: tables.storedCommit, journal: journal, root: root)
    } catch {
      lock.withLock { tables.endReading(journal) }
      throw error
    }
  }

  private func end(_ copying: Copying) { lock.withLock { tables.endReading(copying.journal) } }

  private func end(_ lent: IndexReaders.Lent) {
    lent.rows.end()
    tables.readers.end(lent)
  }

  /// - Parameter goOn: called between two steps; throws where there shall be no other.
  private func copyRows(from source: DatabaseQueue, to target: DatabaseQueue, goOn: () throws -> Void) throws {
    try withoutActuallyEscaping(goOn) { goOn in
      try source.inDatabase { source in
        try target.inDatabase { target in
          try source.backup(to: target, pagesPerStep: Self.pagesPerStep) { _ in try goOn() }
        }
      }
    }
  }

  /// Pages of a copy between two looks at whether it is to go on.
  private static let pagesPerStep: CInt = 128

  /// Waits for a commit that is under way. Nothing can be done afterwards.
  func close() throws {
    while let commit = exclusively({ session.endUnlessCommitting() }) { commit.wait() }
    tables.using { _ in tables.close() }
    try queue.close()
  }
}

/// What a commit left: enough to know later whether the vault is at least as new.
struct CommittedRoot: Sendable {
  let branch: [UInt8]
  let generation: UInt64
  /// ``RootRecord/commit``.
  let commit: [UInt8]
}
