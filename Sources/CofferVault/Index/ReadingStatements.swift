internal import GRDB

/// What looks for rows in one table. Written out, because SQL is never put together from parts.
struct TableReading {
  let value: RowStatement
  /// Rows from a key (exclusive) up to another (inclusive), in order.
  let scan: RowStatement
  /// Keys and tags from a key (inclusive) up to another (exclusive), in order.
  let tags: RowStatement

  static func entry(_ db: Database) throws -> TableReading {
    TableReading(
      value: try RowStatement(db, "SELECT value FROM entry WHERE key = ?"),
      scan: try RowStatement(db, "SELECT key, value FROM entry WHERE key > ? AND key <= ? ORDER BY key"),
      tags: try RowStatement(
        db, "SELECT key, substr(value, -16) FROM entry WHERE key >= ? AND key < ? ORDER BY key"))
  }

  static func record(_ db: Database) throws -> TableReading {
    TableReading(
      value: try RowStatement(db, "SELECT value FROM record WHERE key = ?"),
      scan: try RowStatement(db, "SELECT key, value FROM record WHERE key > ? AND key <= ? ORDER BY key"),
      tags: try RowStatement(
        db, "SELECT key, substr(value, -16) FROM record WHERE key >= ? AND key < ? ORDER BY key"))
  }
}

/// What reads an index, through one connection.
struct ReadingStatements {
  let entry: TableReading
  let record: TableReading
  let bucket: RowStatement
  let root: RowStatement
  let salt: RowStatement
  let begin: RowStatement
  let rollback: RowStatement

  init(_ db: Database) throws {
    entry = try .entry(db)
    record = try .record(db)
    bucket = try RowStatement(db, "SELECT value FROM bucket WHERE id = ?")
    root = try RowStatement(db, "SELECT value FROM root WHERE id = 1")
    salt = try RowStatement(db, "SELECT value FROM salt WHERE id = ?")
    begin = try RowStatement(db, "BEGIN")
    rollback = try RowStatement(db, "ROLLBACK")
  }

  func close() {
    for table in [entry, record] {
      for statement in [table.value, table.scan, table.tags] { statement.close() }
    }
    for statement in [bucket, root, salt, begin, rollback] { statement.close() }
  }

  subscript(table: RecordTable) -> TableReading { table == .entry ? entry : record }
}
