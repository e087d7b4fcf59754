internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Foundation
internal import GRDB

/// The sealed rows of a vault, behind one lock.
///
/// Invariants, held between operations:
/// 1. a row that was read or written lies in a bucket that was verified first;
/// 2. the buckets in memory equal the rows in SQLite, which are those of the last commit; what changed since is in the
///    session's buffer, and what a commit under way is about to store below it;
/// 3. after a commit that failed for another reason than a full disk, nothing more is written until the vault is opened
///    again.
final class Index: Sendable {
  /// Kept open; all statements run past the queue, under `lock` or, of a commit, while nobody reads.
  private let queue: DatabaseQueue
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
      let session = IndexSession(stored: try StoredRows(db, keys: keys, vault: vault, new: root), keys: keys)
      defer { session.close() }
      try session.operation { try firstRows(session) }
      let commit = try session.beginCommit()
      let preparation = try session.prepare(commit, commit.changes.sorted)
      session.store(preparation, commit)
      return try session.takeOver(commit, preparation)
    }
  }

  init(at path: String, keys: UnlockedKeys, vault: VaultID) throws {
    queue = try IndexDatabase.open(at: path)
    session = try queue.inDatabase { db in
      IndexSession(stored: try StoredRows(db, keys: keys, vault: vault), keys: keys)
    }
  }

  /// Runs one operation: all of its changes stay, or none.
  func perform<Result>(_ body: (IndexSession) throws -> Result) throws -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try session.operation { try body(session) }
  }

  /// Reads what is stored and what changed since.
  func read<Result>(_ body: (IndexSession) throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(session)
  }

  /// Takes more memory, for who lists folders and opens files again and again; see ``IndexSession/remember(_:)``.
  func remember(_ count: Int?) {
    lock.lock()
    defer { lock.unlock() }
    session.remember(count)
    session.withConnection {
      // Where these fail, reading is slower, or memory stays, and nothing else.
      if count != nil {
        try? queue.inDatabase { db in try db.execute(sql: "PRAGMA cache_size = -8192") }
      } else {
        try? queue.inDatabase { db in try db.execute(sql: "PRAGMA cache_size = -2048") }
        try? queue.inDatabase { db in try db.execute(sql: "PRAGMA shrink_memory") }
      }
    }
  }

  /// Reads everything anew from here on, whatever is in memory: for who wants to know what is stored.
  func forgetOpened() {
    lock.lock()
    defer { lock.unlock() }
    session.withConnection {
      session.forgetOpened()
      try? queue.inDatabase { db in try db.execute(sql: "PRAGMA shrink_memory") }
    }
  }

  // MARK: Committing

  typealias Committed = (root: CommittedRoot, removals: [PendingRemoval])

  /// Makes everything so far durable; nil where others did, or nothing changed. A thread that waited while another committed
  /// finds nothing left to do: so commits at the same time become one.
  ///
  /// - Parameters: as those of ``finish(_:prepare:makeRoom:)``.
  func commit(prepare: () throws -> Void, makeRoom: () -> Bool = { false }) throws -> Committed? {
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

  /// Brings a commit to its end. No lock is held while it seals and writes: operations go on, and wait only where they need
  /// of SQLite what they do not find in memory.
  ///
  /// Where the disk is full, nothing is lost: the changes are as before, and can be committed again. After any other failure
  /// of the index's nobody can know what is stored, and the vault must be opened again.
  /// - Parameters:
  ///   - prepare: makes durable what the rows refer to. It runs after the operations whose changes are committed.
  ///   - makeRoom: called where the disk is full and the commit makes room itself: gives it what was kept for it, or says
  ///     that nothing was. The commit is tried again before anybody else can begin one.
  func finish(_ commit: CommitUnderWay, prepare: () throws -> Void, makeRoom: () -> Bool) throws -> Committed {
    let changes = commit.changes.sorted
    var isPrepared = false
    func attempt() throws -> CommittedRoot {
      isPrepared = false
      try prepare()
      isPrepared = true
      let preparation = try read { try $0.prepare(commit, changes) }
      session.store(preparation, commit)
      return try read { try $0.takeOver(commit, preparation) }
    }
    do {
      do {
        return (try attempt(), commit.removals)
      } catch {
        // Only for what makes room: anything else would use it up, and nothing could be removed any more.
        // Where a look at what is stored fails, the disk is still what has failed the commit, and the changes stay.
        guard VaultError.wrapping(error) == .full, (try? read({ try $0.isShrinking(commit) })) == true, makeRoom()
        else {
          throw error
        }
        return (try attempt(), commit.removals)
      }
    } catch {
      read { $0.fail(commit, isFinal: isPrepared && VaultError.wrapping(error) != .full) }
      throw error
    }
  }

  /// Writes a copy of the last commit's rows to a new file; returns what it holds.
  ///
  /// Operations wait meanwhile: the rows are a small part of a vault.
  func copy(
    to path: String, isCancelled: () -> Bool
  ) throws -> (root: CommittedRoot, nextObject: UInt64) {
    lock.lock()
    defer { lock.unlock() }
    try session.requireUsable()
    return try session.withConnection {
      let copy = try DatabaseQueue(path: path)
      try withoutActuallyEscaping(isCancelled) { isCancelled in
        try queue.backup(to: copy, pagesPerStep: 1024) { _ in if isCancelled() { throw VaultError.cancelled } }
      }
      try copy.close()
      return (session.committed, session.committedNextObject)
    }
  }

  /// Waits for a commit that is under way. Nothing can be done afterwards.
  func close() throws {
    while let commit = read({ $0.closeUnlessCommitting() }) { commit.wait() }
    try queue.close()
  }
}

/// What a commit left: enough to know later whether the vault is at least as new.
struct CommittedRoot: Sendable {
  let branch: [UInt8]
  let generation: UInt64
  /// The root record as it is stored.
  let sealed: [UInt8]

  /// SHA-256 of the sealed root record. Made when it is asked for: most commits are followed by another before that.
  var digest: [UInt8] { Digest.sha256(sealed) }
}
