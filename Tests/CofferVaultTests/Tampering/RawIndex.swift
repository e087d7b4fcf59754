import Foundation
import GRDB

/// The rows of `index.sqlite` as anyone can read and change them who holds the file.
struct RawIndex {
  enum Table: CaseIterable {
    case bucket, entry, record, root, salt

    fileprivate var update: String {
      switch self {
      case .bucket: "UPDATE bucket SET value = ? WHERE id = ?"
      case .entry: "UPDATE entry SET value = ? WHERE key = ?"
      case .record: "UPDATE record SET value = ? WHERE key = ?"
      case .root: "UPDATE root SET value = ? WHERE id = ?"
      case .salt: "UPDATE salt SET value = ? WHERE id = ?"
      }
    }

    fileprivate var insert: String {
      switch self {
      case .bucket: "INSERT OR REPLACE INTO bucket(value, id) VALUES (?, ?)"
      case .entry: "INSERT OR REPLACE INTO entry(value, key) VALUES (?, ?)"
      case .record: "INSERT OR REPLACE INTO record(value, key) VALUES (?, ?)"
      case .root: "INSERT OR REPLACE INTO root(value, id) VALUES (?, ?)"
      case .salt: "INSERT OR REPLACE INTO salt(value, id) VALUES (?, ?)"
      }
    }

    fileprivate var delete: String {
      switch self {
      case .bucket: "DELETE FROM bucket WHERE id = ?"
      case .entry: "DELETE FROM entry WHERE key = ?"
      case .record: "DELETE FROM record WHERE key = ?"
      case .root: "DELETE FROM root WHERE id = ?"
      case .salt: "DELETE FROM salt WHERE id = ?"
      }
    }

    fileprivate var select: String {
      switch self {
      case .bucket: "SELECT id, value FROM bucket ORDER BY id"
      case .entry: "SELECT key, value FROM entry ORDER BY key"
      case .record: "SELECT key, value FROM record ORDER BY key"
      case .root: "SELECT id, value FROM root"
      case .salt: "SELECT id, value FROM salt ORDER BY id"
      }
    }
  }

  private let queue: DatabaseQueue

  init(_ vaultPath: String) throws { queue = try DatabaseQueue(path: vaultPath + "/index.sqlite") }

  func rows(_ table: Table) throws -> [(key: DatabaseValue, value: Data)] {
    try queue.read { db in try Row.fetchAll(db, sql: table.select).map { ($0[0], $0[1]) } }
  }

  func value(_ table: Table, _ key: DatabaseValue) throws -> Data? {
    try rows(table).first { $0.key == key }?.value
  }

  func update(_ table: Table, _ key: DatabaseValue, to value: Data) throws {
    try queue.write { db in try db.execute(sql: table.update, arguments: [value, key]) }
  }

  /// Stores a row, whether or not there is one of its key.
  func put(_ table: Table, _ key: DatabaseValue, _ value: Data) throws {
    try queue.write { db in try db.execute(sql: table.insert, arguments: [value, key]) }
  }

  func delete(_ table: Table, _ key: DatabaseValue) throws {
    try queue.write { db in try db.execute(sql: table.delete, arguments: [key]) }
  }

  func close() throws { try queue.close() }
}
