internal import CSQLiteAccess
internal import CofferSystem
internal import GRDB

/// A prepared statement that takes and gives bytes where they lie. GRDB prepares and owns it; binding and stepping go
/// past GRDB's values, because a commit of a thousand files runs thousands of them.
///
/// Used only by who has the connection (``IndexTables/using(_:)``).
final class RowStatement {
  private var statement: Statement?
  /// Valid while the statement is.
  private var handle: UnsafeMutableRawPointer

  init(_ db: Database, _ sql: String) throws {
    let statement = try db.makeStatement(sql: sql)
    handle = UnsafeMutableRawPointer(statement.sqliteStatement)
    self.statement = statement
  }

  /// Gives the statement back to SQLite, which closes no connection before. Nothing can be run afterwards.
  func close() { statement = nil }

  enum Parameter {
    case bytes(UnsafeRawBufferPointer)
    case integer(Int64)
  }

  /// Runs a statement that gives no rows.
  func run(_ parameters: Parameter...) throws {
    try bind(parameters)
    defer { coffer_sqlite_reset(handle) }
    try check(coffer_sqlite_step(handle), is: Self.done)
  }

  /// Calls `body` with the only row, if there is one.
  func first<Result>(_ parameters: Parameter..., body: (Columns) throws -> Result) throws -> Result? {
    try bind(parameters)
    defer { coffer_sqlite_reset(handle) }
    let code = coffer_sqlite_step(handle)
    if code == Self.done { return nil }
    try check(code, is: Self.row)
    return try body(Columns(handle: handle))
  }

  /// Calls `body` with each row.
  func forEach(_ parameters: Parameter..., body: (Columns) throws -> Void) throws {
    try bind(parameters)
    defer { coffer_sqlite_reset(handle) }
    while true {
      let code = coffer_sqlite_step(handle)
      if code == Self.done { return }
      try check(code, is: Self.row)
      try body(Columns(handle: handle))
    }
  }

  struct Columns {
    fileprivate let handle: UnsafeMutableRawPointer

    func integer(_ column: Int) -> Int64 { coffer_sqlite_column_integer(handle, CInt(column)) }

    /// A column's bytes, until the next row. Throws where somebody stored something else than a blob.
    subscript(column: Int) -> UnsafeRawBufferPointer {
      get throws {
        var count: CInt = 0
        guard let bytes = coffer_sqlite_column_blob(handle, CInt(column), &count) else {
          throw VaultError.damaged(what: "the index's rows")
        }
        return UnsafeRawBufferPointer(start: bytes, count: Int(count))
      }
    }
  }

  private static let row: CInt = 100
  private static let done: CInt = 101

  private func bind(_ parameters: [Parameter]) throws {
    guard statement != nil else { throw VaultError.needsReopening }
    for (index, parameter) in parameters.enumerated() {
      let number = CInt(index + 1)
      let code =
        switch parameter {
        case .bytes(let bytes): coffer_sqlite_bind_blob(handle, number, bytes.baseAddress, CInt(bytes.count))
        case .integer(let value): coffer_sqlite_bind_integer(handle, number, value)
        }
      try check(code, is: 0)
    }
  }

  private func check(_ code: CInt, is expected: CInt) throws {
    guard code == expected else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
  }
}

/// The statements on one table. Written out, because SQL is never put together from parts.
struct TableStatements {
  let value: RowStatement
  let insert: RowStatement
  let update: RowStatement
  let delete: RowStatement
  /// Rows from a key (exclusive) up to another (inclusive), in order.
  let scan: RowStatement
  /// Keys and tags from a key (inclusive) up to another (exclusive), in order.
  let tags: RowStatement

  static func entry(_ db: Database) throws -> TableStatements {
    TableStatements(
      value: try RowStatement(db, "SELECT value FROM entry WHERE key = ?"),
      insert: try RowStatement(db, "INSERT INTO entry(key, value) VALUES (?, ?)"),
      update: try RowStatement(db, "UPDATE entry SET value = ?2 WHERE key = ?1"),
      delete: try RowStatement(db, "DELETE FROM entry WHERE key = ?"),
      scan: try RowStatement(db, "SELECT key, value FROM entry WHERE key > ? AND key <= ? ORDER BY key"),
      tags: try RowStatement(
        db, "SELECT key, substr(value, -16) FROM entry WHERE key >= ? AND key < ? ORDER BY key"))
  }

  static func record(_ db: Database) throws -> TableStatements {
    TableStatements(
      value: try RowStatement(db, "SELECT value FROM record WHERE key = ?"),
      insert: try RowStatement(db, "INSERT INTO record(key, value) VALUES (?, ?)"),
      update: try RowStatement(db, "UPDATE record SET value = ?2 WHERE key = ?1"),
      delete: try RowStatement(db, "DELETE FROM record WHERE key = ?"),
      scan: try RowStatement(db, "SELECT key, value FROM record WHERE key > ? AND key <= ? ORDER BY key"),
      tags: try RowStatement(
        db, "SELECT key, substr(value, -16) FROM record WHERE key >= ? AND key < ? ORDER BY key"))
  }
}

/// Every statement of an open index.
struct IndexStatements {
  let entry: TableStatements
  let record: TableStatements
  let bucket: RowStatement
  let storeBucket: RowStatement
  let root: RowStatement
  let storeRoot: RowStatement
  let salt: RowStatement
  let storeSalt: RowStatement
  let begin: RowStatement
  let commit: RowStatement
  let rollback: RowStatement
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
    bucket = try RowStatement(db, "SELECT value FROM bucket WHERE id = ?")
    // Not REPLACE, which removes the row first: a value of the same length is written over where it lies.
    storeBucket = try RowStatement(
      db,
      "INSERT INTO bucket(id, value) VALUES (?, ?) ON CONFLICT(id) DO UPDATE SET value = excluded.value")
    root = try RowStatement(db, "SELECT value FROM root WHERE id = 1")
    storeRoot = try RowStatement(
      db, "INSERT INTO root(id, value) VALUES (1, ?) ON CONFLICT(id) DO UPDATE SET value = excluded.value")
    salt = try RowStatement(db, "SELECT value FROM salt WHERE id = ?")
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
      for statement in [table.value, table.insert, table.update, table.delete, table.scan, table.tags] {
        statement.close()
      }
    }
    let others = [
      bucket, storeBucket, root, storeRoot, salt, storeSalt, begin, commit, rollback, cutLog, emptyLog, copyLog,
      freePages, pages,
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

  /// Whether a transaction is under way.
  var isInTransaction: Bool { coffer_sqlite_is_in_transaction(connection) != 0 }

  /// Pages of the index that hold nothing.
  func freePageCount() throws -> Int { try freePages.first { Int(clamping: $0.integer(0)) } ?? 0 }
  /// Pages of the index, also those that are only in the log yet.
  func pageCount() throws -> Int { try pages.first { Int(clamping: $0.integer(0)) } ?? 0 }
  /// The length of the index's file.
  var byteCount: Int { Int(clamping: coffer_sqlite_size(connection)) }
  /// The length of the log's file.
  var logByteCount: Int { Int(clamping: coffer_sqlite_log_size(connection)) }

  subscript(table: RecordTable) -> TableStatements { table == .entry ? entry : record }

  /// Stores rows in one transaction. Where it throws, they are as before.
  ///
  /// - Parameter between: called now and then between two rows, and may read other ones.
  func store(
    _ changes: some Sequence<RowChange>, pages: [(page: Int, value: [UInt8])],
    salt: (index: UInt32, value: [UInt8])?, root newRoot: [UInt8], between: () throws -> Void = {}
  ) throws {
    try begin.run()
    do {
      if let (index, value) = salt {
        try value.withUnsafeBytes { try storeSalt.run(.integer(Int64(index)), .bytes($0)) }
      }
      for (position, change) in changes.enumerated() {
        if position % Self.rowsBetween == Self.rowsBetween - 1 { try between() }
        try store(change)
      }
      for (page, value) in pages {
        try value.withUnsafeBytes { try storeBucket.run(.integer(Int64(page)), .bytes($0)) }
      }
      try newRoot.withUnsafeBytes { try storeRoot.run(.bytes($0)) }
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
    between: () throws -> Void = {}
  ) throws {
    try store(rows.sorted, pages: rows.sortedPages, salt: salt, root: root, between: between)
  }

  /// Some tenth of a millisecond: so long waits who is let in, and so much is done before the next is.
  private static let rowsBetween = 16

  private func store(_ change: RowChange) throws {
    let table = self[change.table]
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
