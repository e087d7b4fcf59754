internal import CofferServer
internal import Foundation
internal import GRDB

/// One transaction of ``SQLitePolicyStore``. It lives no longer than the call that it was made for.
///
/// Statements are `StaticString`s: SQL that was put together while the program runs does not compile.
struct SQLiteTransaction: StoreTransaction {
  let database: Database

  /// Runs one statement and returns how many rows it changed.
  @discardableResult
  func change(_ sql: StaticString, _ arguments: StoredValues) throws -> Int {
    try database.execute(sql: sql.description, arguments: arguments.bound())
    return database.changesCount
  }

  func first<Value>(
    _ sql: StaticString, _ arguments: StoredValues, _ decode: (StoredRow) throws -> Value
  ) throws -> Value? {
    try Row.fetchOne(database, sql: sql.description, arguments: arguments.bound()).map {
      try decode(StoredRow(row: $0))
    }
  }

  func all<Value>(
    _ sql: StaticString, _ arguments: StoredValues, _ decode: (StoredRow) throws -> Value
  ) throws -> [Value] {
    try Row.fetchAll(database, sql: sql.description, arguments: arguments.bound()).map {
      try decode(StoredRow(row: $0))
    }
  }

  static func json(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }
}

/// A row whose columns are read with errors, never with traps: the file may have been altered.
struct StoredRow {
  let row: Row

  func text(_ column: String) throws -> String { try row.decode(String.self, forColumn: column) }
  func optionalText(_ column: String) throws -> String? { try row.decode(String?.self, forColumn: column) }
  func integer(_ column: String) throws -> Int64 { try row.decode(Int64.self, forColumn: column) }
  func optionalInteger(_ column: String) throws -> Int64? { try row.decode(Int64?.self, forColumn: column) }
  func optionalBytes(_ column: String) throws -> [UInt8]? {
    try row.decode(Data?.self, forColumn: column).map { Array($0) }
  }
  func bytes(_ column: String) throws -> [UInt8] { Array(try row.decode(Data.self, forColumn: column)) }

  /// A value that `make` may refuse.
  func value<Stored, Value>(_ column: String, _ stored: Stored, _ make: (Stored) throws -> Value?) throws -> Value {
    guard let value = try? make(stored) else { throw StoreError.damaged(column) }
    return value
  }

  func json<Value: Decodable>(_ type: Value.Type, _ column: String) throws -> Value {
    try value(column, try text(column)) { try JSONDecoder().decode(type, from: Data($0.utf8)) }
  }
}
