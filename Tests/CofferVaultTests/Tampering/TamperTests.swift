import CofferFiles
import CofferSystem
import CofferTestSupport
import Foundation
import GRDB
import Testing

@testable import CofferVault

/// Whoever holds the folder changes what is stored. Whatever is read afterwards is what was written, or an error.
@Suite struct TamperTests {
  /// The tables of the index; a new one without a row here fails `every table is tried`.
  static let tables = ["bucket", "entry", "record", "root", "salt"]

  @Test func `every table is tried`() throws {
    let fixture = try VaultFixture()
    try fixture.create().close()
    let found = try Self.database(fixture.vaultPath).read { db in
      try String.fetchAll(db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    }
    #expect(found == Self.tables)
  }

  /// What a table can hold beside the bytes that `TamperMatrix` tries.
  @Test(arguments: tables, [nil, 42]) func `a row without bytes, or with a number for them, is found`(
    table: String, number: Int?
  ) throws {
    let fixture = try VaultFixture()
    let expected = try fill(fixture)
    let backup = fixture.folder("backup")
    try FileManager.default.copyItem(atPath: fixture.vaultPath, toPath: backup)
    for row in try Self.rows(fixture.vaultPath, table) {
      let value = number?.databaseValue ?? Data().databaseValue
      try Self.database(fixture.vaultPath).write { db in
        try db.execute(sql: Self.updates[table] ?? "", arguments: [value, row.key])
      }
      // A salt whose rows were all written anew is needed by nobody.
      let isWhole = try readsTruthfully(fixture, expected)
      #expect(!isWhole || table == "salt")
      try FileManager.default.removeItem(atPath: fixture.vaultPath)
      try FileManager.default.copyItem(atPath: backup, toPath: fixture.vaultPath)
    }
    #expect(try readsTruthfully(fixture, expected) == true)
  }

  @Test func `an operation that fails on damage elsewhere takes nothing away`() throws {
    let fixture = try VaultFixture()
    let expected = try fill(fixture)
    let places = ["vault", "keys"]
    for name in places {
      try FileManager.default.copyItem(atPath: fixture.folder(name), toPath: fixture.folder("backup-" + name))
    }
    var failures = 0
    for page in try Self.rows(fixture.vaultPath, "bucket").compactMap({ Int.fromDatabaseValue($0.key) }) {
      try Self.database(fixture.vaultPath).write { db in
        try db.execute(sql: "UPDATE bucket SET value = zeroblob(100) WHERE id = ?", arguments: [page])
      }
      if let vault = try? fixture.open() {
        do {
          try vault.importFile(fixture.source([1]), to: VaultPath("large"), replacing: true)
        } catch {
          failures += 1
          try? vault.close()
          // Whoever mends the page finds the file that was to be replaced.
          let objects = try Self.objects(fixture.vaultPath).count
          #expect(objects == 2, "page \(page)")
        }
        try? vault.close()
      }
      for name in places {
        try FileManager.default.removeItem(atPath: fixture.folder(name))
        try FileManager.default.copyItem(atPath: fixture.folder("backup-" + name), toPath: fixture.folder(name))
      }
    }
    #expect(failures > 0)
    #expect(try readsTruthfully(fixture, expected) == true)
  }

  @Test func `a tree whose cells are out of order hides nothing and shows nothing old`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    for number in 0..<20 { try vault.importFile(fixture.source([UInt8(number)]), to: VaultPath("f\(number)")) }
    try vault.close()
    let url = URL(filePath: fixture.vaultPath + "/index.sqlite")
    let whole = try Data(contentsOf: url)
    let pageSize = 8192
    var detected = 0
    for page in 1..<(whole.count / pageSize) {
      // Leaves of the clustered table and of the index (SQLite file format, section 1.6): cell pointers behind 8 bytes.
      guard whole[page * pageSize] == 0x0a else { continue }
      let count = Int(whole[page * pageSize + 3]) << 8 | Int(whole[page * pageSize + 4])
      guard count > 2 else { continue }
      for (left, right) in [(0, count - 1), (count / 2, count / 2 + 1), (0, 1)] where right < count {
        var changed = whole
        let (one, two) = (page * pageSize + 8 + 2 * left, page * pageSize + 8 + 2 * right)
        for byte in 0..<2 { changed.swapAt(one + byte, two + byte) }
        try changed.write(to: url)
        do {
          let vault = try fixture.open()
          defer { try? vault.close() }
          for number in 0..<20 { #expect(try vault.contents(of: VaultPath("f\(number)")) == [UInt8(number)]) }
          #expect(try vault.list(.root).count == 20)
        } catch is VaultError {
          detected += 1
        }
      }
    }
    #expect(detected > 0)
    try whole.write(to: url)
    #expect(try fixture.open().list(.root).count == 20)
  }

  @Test func `a row that is replayed and would be overwritten is found before the write`() throws {
    let fixture = try VaultFixture()
    let old = try {
      let vault = try fixture.create()
      try vault.importFile(fixture.source([1]), to: VaultPath("a"))
      try vault.close()
      return try Self.rows(fixture.vaultPath, "record")
    }()
    let vault = try fixture.open()
    try vault.importFile(fixture.source([2]), to: VaultPath("b"))
    try vault.close()
    // The root folder's record goes back to when it held one name.
    let now = try Self.rows(fixture.vaultPath, "record")
    let changed = try #require(now.first { row in old.contains { $0.key == row.key && $0.value != row.value } })
    let before = try #require(old.first { $0.key == changed.key })
    try Self.database(fixture.vaultPath).write { db in
      try db.execute(sql: "UPDATE record SET value = ? WHERE key = ?", arguments: [before.value, before.key])
    }
    let again = try fixture.open()
    #expect(throws: VaultError.self) { try again.makeDirectory(at: VaultPath("c")) }
    try again.close()
  }

  // MARK: Material

  /// A folder with a small file, one of a few blocks, and one of many.
  private func fill(_ fixture: VaultFixture) throws -> [String: [UInt8]] {
    var generator = SeededGenerator(seed: 11)
    let expected = [
      "docs/small": [UInt8]([9, 9, 9]), "docs/medium": generator.bytes(20_000), "large": generator.bytes(400_000),
    ]
    let vault = try fixture.create()
    // So that there are bucket pages.
    vault.index.read { $0.heldBucketLimit = 0 }
    try vault.makeDirectory(at: VaultPath("docs"))
    for (path, bytes) in expected.sorted(by: { $0.key < $1.key }) {
      try vault.importFile(fixture.source(bytes), to: VaultPath(path))
    }
    try vault.close()
    return expected
  }

  /// True: all is there and right. False: an error said that it is not. A wrong byte fails the test.
  private func readsTruthfully(_ fixture: VaultFixture, _ expected: [String: [UInt8]]) throws -> Bool {
    var isWhole = true
    do {
      let vault = try fixture.open()
      defer { try? vault.close() }
      for (path, bytes) in expected {
        do {
          let found = try vault.contents(of: VaultPath(path))
          #expect(found == bytes, "\(path) is another's, or an older one")
        } catch is VaultError {
          isWhole = false
        }
      }
      let names = try? Set(vault.list(VaultPath("docs")).map(\.name))
      if let names { #expect(names == [Array("small".utf8), Array("medium".utf8)]) } else { isWhole = false }
      if vault.isReadOnly { isWhole = false }
    } catch {
      isWhole = false
    }
    return isWhole
  }

  struct StoredRow: Equatable {
    let key: DatabaseValue
    let value: Data
  }

  private static let updates = [
    "bucket": "UPDATE bucket SET value = ? WHERE id = ?", "entry": "UPDATE entry SET value = ? WHERE key = ?",
    "record": "UPDATE record SET value = ? WHERE key = ?", "root": "UPDATE root SET value = ? WHERE id = ?",
    "salt": "UPDATE salt SET value = ? WHERE id = ?",
  ]

  private static let queries = [
    "bucket": "SELECT id, value FROM bucket ORDER BY id", "entry": "SELECT key, value FROM entry ORDER BY key",
    "record": "SELECT key, value FROM record ORDER BY key", "root": "SELECT id, value FROM root",
    "salt": "SELECT id, value FROM salt ORDER BY id",
  ]

  /// At most four rows of a table; of the bucket pages only those that count some row.
  private static func rows(_ vaultPath: String, _ table: String) throws -> [StoredRow] {
    try database(vaultPath).read { db in
      let rows = try Row.fetchAll(db, sql: queries[table] ?? "").map { StoredRow(key: $0[0], value: $0[1]) }
      guard table == "bucket" else { return Array(rows.prefix(4)) }
      let keys = try Data.fetchAll(db, sql: "SELECT key FROM entry UNION SELECT key FROM record")
      // A page is named by the first eight bits of the keys that it counts.
      let used = Set(keys.map { Int64($0[0]) })
      return Array(rows.filter { used.contains(Int64.fromDatabaseValue($0.key) ?? -1) }.prefix(4))
    }
  }

  private static func database(_ vaultPath: String) throws -> DatabaseQueue {
    try DatabaseQueue(path: vaultPath + "/index.sqlite")
  }

  static func objects(_ vaultPath: String) throws -> [URL] {
    let root = URL(filePath: vaultPath + "/objects")
    return try FileManager.default.subpathsOfDirectory(atPath: root.path).sorted().filter { $0.contains("/") }
      .map { root.appending(path: $0) }
  }
}
