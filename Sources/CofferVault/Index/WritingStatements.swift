internal import CSQLiteAccess
internal import CofferSystem
internal import GRDB

/// What changes rows in one table. Written out, because SQL is never put together from parts.
struct TableWriting {
  let insert: RowStatement
  let update: RowStatement
  let delete: RowStatement

  static func entry(_ db: Database) throws -> TableWriting {
    TableWriting(
      insert: try RowStatement(db, "INSERT INTO entry(key, value) VALUES (?, ?)"),
      update: try RowStatement(db, "UPDATE entry SET value = ?2 WHERE key = ?1"),
      delete: try RowStatement(db, "DELETE FROM entry WHERE key = ?"))
  }

  static func record(_ db: Database) throws -> TableWriting {
    TableWriting(
      insert: try RowStatement(db, "INSERT INTO record(key, value) VALUES (?, ?)"),
      update: try RowStatement(db, "UPDATE record SET value = ?2 WHERE key = ?1"),
      delete: try RowStatement(db, "DELETE FROM record WHERE key = ?"))
  }
}

/// What changes an index, and copies its log.
struct WritingStatements {
  private let entry: TableWriting
  private let record: TableWriting
  private let storeBucket: RowStatement
  private let storeRoot: RowStatement
  private let storeSalt: RowStatement
  private let begin: RowStatement
  private let commit: RowStatement
  private let rollback: RowStatement
  /// Copies the log into the index, and gives its room back.
  let cutLog: RowStatement
  /// Copies the log into the index, and keeps its room.
  let emptyLog: RowStatement
  /// As `emptyLog`, as far as nobody reads there.
  let copyLog: RowStatement
  private let freePages: RowStatement
  private let pages: RowStatement
  /// Valid until ``close()``.
  private let connection: UnsafeMutableRawPointer
  private let log = LogLength()

  init(_ db: Database) throws {
    guard let connection = db.sqliteConnection else { throw VaultError.damaged(what: "the index") }
    self.connection = UnsafeMutableRawPointer(connection)
    coffer_sqlite_remove_hooks(self.connection)
    entry = try .entry(db)
    record = try .record(db)
    // Not REPLACE, which removes the row first: a value of the same length is written over where it lies.
    storeBucket = try RowStatement(
      db,
      "INSERT INTO bucket(id, value) VALUES (?, ?) ON CONFLICT(id) DO UPDATE SET value = excluded.value")
    storeRoot = try RowStatement(
      db, "INSERT INTO root(id, value) VALUES (1, ?) ON CONFLICT(id) DO UPDATE SET value = excluded.value")
    storeSalt = try RowStatement(db, "INSERT OR REPLACE INTO salt(id, value) VALUES (?, ?)")
    begin = try RowStatement(db, "BEGIN IMMEDIATE")
    commit = try RowStatement(db, "COMMIT")
    rollback = try RowStatement(db, "ROLLBACK")
    freePages = try RowStatement(db, "PRAGMA freelist_count")
    pages = try RowStatement(db, "PRAGMA page_count")
    cutLog = try RowStatement(db, "PRAGMA wal_checkpoint(TRUNCATE)")
    emptyLog = try RowStatement(db, "PRAGMA wal_checkpoint(RESTART)")
    copyLog = try RowStatement(db, "PRAGMA wal_checkpoint(PASSIVE)")
    coffer_sqlite_count_log(self.connection, log.pageCount)
  }

  func close() {
    for table in [entry, record] {
      for statement in [table.insert, table.update, table.delete] { statement.close() }
    }
    let others = [
      storeBucket, storeRoot, storeSalt, begin, commit, rollback, cutLog, emptyLog, copyLog, freePages, pages,
    ]
    for statement in others { statement.close() }
    coffer_sqlite_count_log(connection, nil)
  }

  /// Pages of the log after the last commit, which a copy into the index leaves there.
  var logPageCount: Int { Int(log.pageCount.pointee) }

  /// Where SQLite writes how long the log is.
  private final class LogLength {
    let pageCount = UnsafeMutablePointer<CInt>.allocate(capacity: 1)
    init() { pageCount.initialize(to: 0) }
    deinit { pageCount.deallocate() }
  }

  /// Pages of the index that hold nothing.
  func freePageCount() throws -> Int { try freePages.first { Int(clamping: $0.integer(0)) } ?? 0 }
  /// Pages of the index, also those that are only in the log yet.
  func pageCount() throws -> Int { try pages.first { Int(clamping: $0.integer(0)) } ?? 0 }
  /// The length of the index's file.
  var byteCount: Int { Int(clamping: coffer_sqlite_size(connection)) }
  /// The length of the log's file.
  var logByteCount: Int { Int(clamping: coffer_sqlite_log_size(connection)) }

  /// Stores rows in one transaction. Where it throws, they are as before.
  ///
  /// - Parameter willCommit: called at the transaction's end, for tests.
  func store(
    _ changes: some Sequence<RowChange>, pages: [(page: Int, value: [UInt8])],
    salt: (index: UInt32, value: [UInt8])?, root newRoot: [UInt8], willCommit: () -> Void = {}
  ) throws {
    try begin.run()
    do {
      if let (index, value) = salt {
        try value.withUnsafeBytes { try storeSalt.run(.integer(Int64(index)), .bytes($0)) }
      }
      for change in changes { try store(change) }
      for (page, value) in pages {
        try value.withUnsafeBytes { try storeBucket.run(.integer(Int64(page)), .bytes($0)) }
      }
      try newRoot.withUnsafeBytes { try storeRoot.run(.bytes($0)) }
      willCommit()
      try commit.run()
    } catch {
      // SQLite ends the transaction by itself on some errors (a full disk among them); then there is nothing to undo.
      try? rollback.run()
      throw error
    }
  }

  /// Stores what a journal has, in one transaction.
  ///
  /// - Parameter root: that of `rows`, sealed.
  func store(
    _ rows: JournaledRows, salt: (index: UInt32, value: [UInt8])? = nil, root: [UInt8],
    willCommit: () -> Void = {}
  ) throws {
    try store(rows.sorted, pages: rows.sortedPages, salt: salt, root: root, willCommit: willCommit)
  }

  private func store(_ change: RowChange) throws {
    let table = change.table == .entry ? entry : record
    try change.id.key.withBytes { row in
      try change.value.withUnsafeBytes { value in
        switch (change.isStored, !value.isEmpty) {
        case (false, true): try table.insert.run(.bytes(row), .bytes(value))
        case (true, true): try table.update.run(.bytes(row), .bytes(value))
        case (true, false): try table.delete.run(.bytes(row))
        case (false, false): break
        }
      }
    }
  }
}
