internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import GRDB

/// The sealed rows of a vault, behind one lock.
///
/// Operations apply inside one open SQLite transaction, each in a savepoint of its own; ``commit()`` makes them durable
/// together. Invariants, held between operations:
/// 1. a row that was read or written lies in a bucket that was verified first;
/// 2. `buckets` equals the rows in the open transaction, and the sealed pages equal the rows of the last commit;
/// 3. after a commit that failed, nothing more is written until the vault is opened again.
final class Index: Sendable {
  private let queue: DatabaseQueue
  /// Touched only inside `queue`.
  private nonisolated(unsafe) let session: IndexSession

  /// Writes the first root and the empty buckets of a new vault; returns its first anchor.
  static func create(at path: String, keys: UnlockedKeys, vault: VaultID, firstRows: (IndexSession) throws -> Void)
    throws
    -> CommittedRoot
  {
    try IndexDatabase.create(at: path)
    let queue = try IndexDatabase.open(at: path)
    let root = RootRecord(branch: Randomness.bytes(RootRecord.branchByteCount))
    return try queue.inDatabase { db in
      let session = IndexSession(db: db, keys: keys, vault: vault, root: root, isNew: true)
      try session.operation { try firstRows(session) }
      return try session.commit().root
    }
  }

  init(at path: String, keys: UnlockedKeys, vault: VaultID) throws {
    queue = try IndexDatabase.open(at: path)
    session = try queue.inDatabase { db in
      try IndexSession(opening: db, keys: keys, vault: vault)
    }
  }

  /// Runs one operation: all of its changes stay, or none.
  func perform<Result>(_ body: (IndexSession) throws -> Result) throws -> Result {
    try queue.inDatabase { _ in try session.operation { try body(session) } }
  }

  /// Reads, without opening a transaction.
  func read<Result>(_ body: (IndexSession) throws -> Result) throws -> Result {
    try queue.inDatabase { _ in try body(session) }
  }

  /// Makes everything since the last commit durable; nil where nothing changed.
  ///
  /// - Parameter prepare: makes durable what the rows refer to. It runs under the index's lock, so that no operation
  ///   comes between it and the commit.
  func commit(prepare: () throws -> Void) throws -> (root: CommittedRoot, removals: [PendingRemoval])? {
    try queue.inDatabase { _ in
      try session.requireUsable()
      guard session.hasChanges else { return nil }
      try prepare()
      return try session.commit()
    }
  }

  func close() throws { try queue.close() }
}

/// What a commit left: enough to know later whether the vault is at least as new.
struct CommittedRoot: Sendable {
  let branch: [UInt8]
  let generation: UInt64
  /// SHA-256 of the sealed root record.
  let digest: [UInt8]
}
