internal import CSQLiteAccess
internal import CofferSystem
internal import GRDB

/// A prepared statement that takes and gives bytes where they lie. GRDB prepares and owns it; binding and stepping go
/// past GRDB's values, because a commit of a thousand files runs thousands of them.
///
/// Used by one thread at a time, as its connection is.
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
