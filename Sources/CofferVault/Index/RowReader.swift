internal import CofferCrypto
internal import CofferSystem
internal import GRDB

/// Reads the index's rows through one connection, and holds what it finds against what the last commit says.
///
/// So an answer is right, whoever stores something meanwhile. That something is not as expected says only that it is damaged, or that it
/// has been changed since: which of them, whoever keeps others from storing finds out.
///
/// Used by one thread at a time.
final class RowReader {
  private let statements: ReadingStatements
  private let hasher: RowHasher
  private let sealer: RecordSealer

  init(_ db: Database, _ hasher: RowHasher, _ sealer: RecordSealer) throws {
    statements = try ReadingStatements(db)
    (self.hasher, self.sealer) = (hasher, sealer)
  }

  /// Gives the statements back to SQLite, which closes no connection before. Nothing can be read afterwards.
  func close() { statements.close() }

  /// Reads what is asked for, and throws where it is not what is expected.
  ///
  /// - Parameter journaled: what the journal had when `expected` was so: its rows stand in the place of SQLite's.
  func answer(
    _ read: StoredRead, _ expected: StoredRead.Expectation, _ journaled: JournaledRows
  ) throws -> StoredRead.Answer {
    switch (read, expected) {
    case (.page(let page), .page(let tag)): .page(try readPage(page, tag: tag, journaled))
    case (.bucket(let index), .bucket(let bucket)): .bucket(try scan(index, expecting: bucket, journaled))
    case (.value(let id), .value(let tag)): .value(try value(id, tag, journaled))
    case (.values(let kind, let first, let last, _), .values(let rows)):
      .values(try values(kind, after: first, through: last, expecting: rows, journaled))
    default: preconditionFailure("what is expected of another read")
    }
  }

  private func value(_ id: RowID, _ tag: RowTag, _ journaled: JournaledRows) throws -> [UInt8] {
    let found = try id.key.withBytes { row in
      func opened(_ value: UnsafeRawBufferPointer) throws -> [UInt8] {
        guard RowTag(endOf: value) == tag else { throw Self.disorder }
        return try open(value, kind: id.kind, row: row)
      }
      guard let journaled = journaled.row(id.kind.table, id.key) else {
        return try statements[id.kind.table].value.first(.bytes(row)) { try opened($0[0]) }
      }
      return try journaled.value.withUnsafeBytes { try opened($0) }
    }
    guard let found else { throw Self.disorder }
    return found
  }

  private func values(
    _ kind: RecordKind, after first: RowKey?, through last: RowKey, expecting expected: [SortedRows.Row],
    _ journaled: JournaledRows
  ) throws -> [RowKey: [UInt8]] {
    let lower = first?.bytes ?? last.high.bigEndianBytes
    var result: [RowKey: [UInt8]] = [:]
    var position = 0
    try lower.withUnsafeBytes { lower in
      try last.withBytes { upper in
        let logged = journaled.rows(kind.table) { key in
          key.high == last.high && key <= last && (first.map { $0 < key } ?? true)
        }
        try forEach(statements[kind.table].scan, lower, upper, logged) { key, value in
          guard position < expected.count, expected[position].key == key,
            RowTag(endOf: value) == expected[position].tag
          else { throw Self.disorder }
          position += 1
          result[key] = try key.withBytes { try open(value, kind: kind, row: $0) }
        }
      }
    }
    guard position == expected.count else { throw Self.disorder }
    return result
  }

  /// The buckets of a page as it was sealed last; it must carry the tag that the root names.
  private func readPage(_ page: Int, tag: [UInt8], _ journaled: JournaledRows) throws -> [Bucket] {
    let sealed = try journaled.pages[page] ?? statements.bucket.first(.integer(Int64(page))) { Array(try $0[0]) }
    guard let sealed, equalInConstantTime(Array(sealed.suffix(Sealing.tagByteCount)), tag),
      let opened = try? UInt32(page).bigEndianBytes.withUnsafeBytes({ row in
        try sealed.withUnsafeBytes { try open($0, kind: .bucket, row: row) }
      })
    else { throw VaultError.damagedBuckets(page: page) }
    return try Bucket.decodePage(opened)
  }

  /// Compares a bucket's rows with what must be there.
  private func scan(_ index: Int, expecting expected: Bucket, _ journaled: JournaledRows) throws -> VerifiedRows.Scan {
    var scan = VerifiedRows.Scan()
    var found = Bucket()
    let shift = UInt64(64 - VaultFormat.bucketBits)
    let lower = (UInt64(index) << shift).bigEndianBytes
    let isLast = index + 1 == VaultFormat.bucketCount
    // A shorter key sorts before every key that it begins, and 17 bytes of ones behind every key of 16.
    let upper =
      isLast ? [UInt8](repeating: 0xff, count: RowKey.byteCount + 1) : (UInt64(index + 1) << shift).bigEndianBytes
    for table in RecordTable.allCases {
      try lower.withUnsafeBytes { lower in
        try upper.withUnsafeBytes { upper in
          let logged = journaled.rows(table) { $0.bucket == index }
          try forEach(statements[table].tags, lower, upper, logged) { key, value in
            // Strictly ascending, so that a row that a broken tree shows twice does not cancel itself out.
            // No more than there must be, so that rows that somebody added cost neither memory nor time.
            guard found.count < expected.count else { throw VaultError.damagedRows(bucket: index) }
            guard let tag = RowTag(endOf: value), key.bucket == index, scan.append(tag, table, key) else {
              throw Self.disorder
            }
            found.insert(hasher.hash(table, key, tag))
          }
        }
      }
    }
    guard found == expected else { throw VaultError.damagedRows(bucket: index) }
    return scan
  }

  /// Calls `body` with a table's rows between two keys, ascending: SQLite's, and in their place what is in the journal.
  ///
  /// - Parameter journaled: between the same keys, ascending.
  private func forEach(
    _ statement: RowStatement, _ lower: UnsafeRawBufferPointer, _ upper: UnsafeRawBufferPointer,
    _ journaled: [RowChange], _ body: (RowKey, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    var next = 0
    func passJournaled(before key: RowKey?) throws {
      while next < journaled.count, key.map({ journaled[next].id.key < $0 }) ?? true {
        let row = journaled[next]
        next += 1
        if !row.value.isEmpty { try row.value.withUnsafeBytes { try body(row.id.key, $0) } }
      }
    }
    try statement.forEach(.bytes(lower), .bytes(upper)) { columns in
      guard let key = RowKey(try columns[0]) else { throw Self.disorder }
      try passJournaled(before: key)
      if next < journaled.count, journaled[next].id.key == key { return }
      try body(key, try columns[1])
    }
    try passJournaled(before: nil)
  }

  private static let disorder = VaultError.damaged(what: "the order of the index's rows")

  // MARK: Opening

  /// The root as SQLite has it, and the salt that it was sealed with.
  func root() throws -> (root: RootRecord, salt: UInt32) {
    guard let sealed = try statements.root.first(body: { Array(try $0[0]) }) else {
      throw VaultError.damaged(what: "the root record")
    }
    do {
      let plaintext = try RootRecord.row.withUnsafeBytes { row in
        try sealed.withUnsafeBytes { try open($0, kind: .root, row: row) }
      }
      return try (RootRecord(decoding: plaintext), sealed.withUnsafeBytes { try RecordSealer.saltIndex(of: $0) })
    } catch let error as DatabaseError {
      throw error
    } catch {
      throw VaultError.damaged(what: "the root record")
    }
  }

  private func open(_ value: UnsafeRawBufferPointer, kind: RecordKind, row: UnsafeRawBufferPointer) throws -> [UInt8] {
    try recordKey(RecordSealer.saltIndex(of: value)).open(value, kind: kind, row: row)
  }

  /// Goes on to see what SQLite has now, whatever is stored, until ``end()``. Returns the root of that.
  func begin() throws -> RootRecord {
    try statements.begin.run()
    do {
      return try root().root
    } catch {
      end()
      throw error
    }
  }

  /// Ends what was begun.
  func end() {
    // Where it fails there is no transaction.
    try? statements.rollback.run()
  }

  /// The key of a salt, which SQLite has.
  func recordKey(_ index: UInt32) throws -> RecordKey {
    if let known = sealer.key(index) { return known }
    return try sealer.key(index, stored: statements.salt.first(.integer(Int64(index))) { Array(try $0[0]) })
  }
}

extension VaultError {
  static func damagedRows(bucket: Int) -> VaultError { .damaged(what: "rows of the index's bucket \(bucket)") }
  static func damagedBuckets(page: Int) -> VaultError { .damaged(what: "the index's bucket page \(page)") }
}
