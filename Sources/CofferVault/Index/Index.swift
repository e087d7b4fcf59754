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
///    session's buffer;
/// 3. after a commit that failed for another reason than a full disk, nothing more is written until the vault is opened
///    again.
final class Index: Sendable {
  /// Kept open; all statements run under `lock`, past the queue.
  private let queue: DatabaseQueue
  private let lock = NSLock()
  /// Touched only under `lock`.
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
      return try session.commit().root
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
    // Where these fail, reading is slower, or memory stays, and nothing else.
    if count != nil {
      try? queue.inDatabase { db in try db.execute(sql: "PRAGMA cache_size = -8192") }
    } else {
      try? queue.inDatabase { db in try db.execute(sql: "PRAGMA cache_size = -2048") }
      try? queue.inDatabase { db in try db.execute(sql: "PRAGMA shrink_memory") }
    }
  }

  /// Reads everything anew from here on, whatever is in memory: for who wants to know what is stored.
  func forgetOpened() {
    lock.lock()
    defer { lock.unlock() }
    session.forgetOpened()
    try? queue.inDatabase { db in try db.execute(sql: "PRAGMA shrink_memory") }
  }

  /// Makes everything since the last commit durable; nil where nothing changed. A thread that waited while another
  /// committed finds nothing left to do: so commits at the same time become one.
  ///
  /// - Parameter prepare: makes durable what the rows refer to. It runs under the index's lock, so that no operation
  ///   comes between it and the commit.
  func commit(prepare: () throws -> Void) throws -> (root: CommittedRoot, removals: [PendingRemoval])? {
    lock.lock()
    defer { lock.unlock() }
    try session.requireUsable()
    guard session.hasChanges else { return nil }
    try prepare()
    return try session.commit()
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
    let copy = try DatabaseQueue(path: path)
    try withoutActuallyEscaping(isCancelled) { isCancelled in
      try queue.backup(to: copy, pagesPerStep: 1024) { _ in if isCancelled() { throw VaultError.cancelled } }
    }
    try copy.close()
    return (session.committed, session.committedNextObject)
  }

  func close() throws {
    lock.lock()
    defer { lock.unlock() }
    session.close()
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
