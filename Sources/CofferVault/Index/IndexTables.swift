internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Foundation
internal import GRDB
internal import Synchronization

/// SQLite's side of the index: the only place that reads and writes rows, and holds what it reads against what is expected.
///
/// Has a lock of its own, which is held while SQLite is used. Who has it may take the index's lock, and never the other way
/// round: so that nobody waits for a disk, or for the transaction of a commit, who finds what they need in memory.
final class IndexTables {
  private let connection = NSLock()
  private let statements: IndexStatements
  /// Little room is left on the disk: the log shall take as little as it can. For the next commit.
  let keepsLogShort = Atomic(false)
  private var logIsShort = false
  private let freePages = Atomic(0)
  private let logPages = Atomic(0)
  let hasher: RowHasher
  let sealer: RecordSealer

  init(_ db: Database, keys: UnlockedKeys, vault: VaultID) throws {
    statements = try IndexStatements(db)
    hasher = RowHasher(metadataKey: keys.metadata)
    sealer = RecordSealer(metadataKey: keys.metadata, vault: vault)
  }

  /// Runs `body` while nobody else uses the connection. Everything below is called within.
  func using<Result>(_ body: () throws -> Result) rethrows -> Result {
    connection.lock()
    defer { connection.unlock() }
    return try body()
  }

  /// Ends every use of the connection.
  func close() { statements.close() }

  // MARK: Reading

  /// The root as it is stored, and opened. Throws `damaged` where it is not what a commit of this vault wrote.
  func readRoot() throws -> (root: RootRecord, sealed: [UInt8]) {
    guard let sealed = try statements.root.first(body: { Array(try $0[0]) }) else {
      throw VaultError.damaged(what: "the root record")
    }
    do {
      let plaintext = try Self.rootRow.withUnsafeBytes { row in
        try sealed.withUnsafeBytes { try open($0, kind: .root, row: row) }
      }
      return (try RootRecord(decoding: plaintext), sealed)
    } catch let error as DatabaseError {
      throw error
    } catch {
      throw VaultError.damaged(what: "the root record")
    }
  }

  func answer(_ read: StoredRead, _ expected: StoredRead.Expectation) throws -> StoredRead.Answer {
    switch (read, expected) {
    case (.page(let page), .page(let tag)): .page(try readPage(page, tag: tag))
    case (.bucket(let index), .bucket(let bucket)): .bucket(try scan(index, expecting: bucket))
    case (.value(let id), .value(let tag)): .value(try value(id, tag))
    case (.values(let kind, let first, let last, _), .values(let rows)):
      .values(try values(kind, after: first, through: last, expecting: rows))
    default: preconditionFailure("what is expected of another read")
    }
  }

  private func value(_ id: RowID, _ tag: RowTag) throws -> [UInt8] {
    let found = try id.key.withBytes { row in
      try statements[id.kind.table].value.first(.bytes(row)) { columns in
        let value = try columns[0]
        guard RowTag(endOf: value) == tag else { throw Self.disorder }
        return try open(value, kind: id.kind, row: row)
      }
    }
    guard let found else { throw Self.disorder }
    return found
  }

  private func values(
    _ kind: RecordKind, after first: RowKey?, through last: RowKey, expecting expected: [SortedRows.Row]
  ) throws -> [RowKey: [UInt8]] {
    let lower = first?.bytes ?? last.high.bigEndianBytes
    var result: [RowKey: [UInt8]] = [:]
    var position = 0
    try lower.withUnsafeBytes { lower in
      try last.withBytes { upper in
        try statements[kind.table].scan.forEach(.bytes(lower), .bytes(upper)) { columns in
          guard let key = RowKey(try columns[0]) else { throw VaultError.damaged(what: "a row's key") }
          let value = try columns[1]
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
  private func readPage(_ page: Int, tag: [UInt8]) throws -> [Bucket] {
    let sealed = try statements.bucket.first(.integer(Int64(page))) { Array(try $0[0]) }
    guard let sealed, equalInConstantTime(Array(sealed.suffix(Sealing.tagByteCount)), tag),
      let opened = try? UInt32(page).bigEndianBytes.withUnsafeBytes({ row in
        try sealed.withUnsafeBytes { try open($0, kind: .bucket, row: row) }
      })
    else { throw VaultError.damagedBuckets(page: page) }
    return try Bucket.decodePage(opened)
  }

  /// Compares a bucket's rows with what must be there.
  private func scan(_ index: Int, expecting expected: Bucket) throws -> VerifiedRows.Scan {
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
          try statements[table].tags.forEach(.bytes(lower), .bytes(upper)) { columns in
            // Strictly ascending, so that a row that a broken tree shows twice does not cancel itself out.
            // No more than there must be, so that rows that somebody added cost neither memory nor time.
            guard found.count < expected.count else { throw VaultError.damagedRows(bucket: index) }
            guard let key = RowKey(try columns[0]),
              let tag = RowTag(endOf: try columns[1]), key.bucket == index,
              scan.append(tag, table, key)
            else { throw Self.disorder }
            found.insert(hasher.hash(table, key, tag))
          }
        }
      }
    }
    guard found == expected else { throw VaultError.damagedRows(bucket: index) }
    return scan
  }

  private static let disorder = VaultError.damaged(what: "the order of the index's rows")

  static let rootRow: [UInt8] = [1]

  private func open(_ value: UnsafeRawBufferPointer, kind: RecordKind, row: UnsafeRawBufferPointer) throws -> [UInt8] {
    try recordKey(RecordSealer.saltIndex(of: value)).open(value, kind: kind, row: row)
  }

  private func recordKey(_ index: UInt32) throws -> RecordKey {
    if let known = sealer.key(index) { return known }
    return try sealer.key(index, stored: statements.salt.first(.integer(Int64(index))) { Array(try $0[0]) })
  }

  // MARK: Writing

  /// Stores a commit in one transaction. Where it throws, SQLite holds the last one.
  func write(_ commit: SealedCommit) throws {
    adjustLog()
    try statements.begin.run()
    do {
      if let (index, salt) = commit.newSalt {
        try salt.withUnsafeBytes { try statements.storeSalt.run(.integer(Int64(index)), .bytes($0)) }
      }
      for change in commit.changes { try write(change) }
      for (page, value) in commit.sealedPages {
        try value.withUnsafeBytes { try statements.storeBucket.run(.integer(Int64(page)), .bytes($0)) }
      }
      try commit.sealedRoot.withUnsafeBytes { try statements.storeRoot.run(.bytes($0)) }
      try statements.commit.run()
      noteFreePages()
    } catch {
      // SQLite ends the transaction by itself on some errors (a full disk among them); then there is nothing to undo.
      try? statements.rollback.run()
      throw error
    }
  }

  /// Bytes that rows can take without more room on the disk: in the index, and in its log on the way there. What they were after
  /// the last commit where little room is left, and none elsewhere.
  var freeByteCount: Int {
    min(freePages.load(ordering: .relaxed), logPages.load(ordering: .relaxed)) * IndexDatabase.pageSize
  }

  /// Gives the room of the log back, as far as the index has room for what it holds. Where it has none, the log stays.
  func cutLog() { _ = try? statements.cutLog.first { _ in } }

  /// Copies the log into the index, and keeps the log's own room for what comes next: on a full disk others would take it at
  /// once. Not where the index would have to grow by more than `limit` bytes: it would take the room, and lack the rest.
  func emptyLog(growingBy limit: Int) {
    guard let pageCount = try? statements.pageCount(),
      pageCount * IndexDatabase.pageSize - statements.byteCount <= limit
    else { return }
    _ = try? statements.emptyLog.first { _ in }
  }

  /// Pages that the log has when it is copied into the index: SQLite's number, and a MiB where little room is left.
  private static let logLength = (usual: Int32(1000), short: Int32(128))

  private func adjustLog() {
    let isShort = keepsLogShort.load(ordering: .relaxed)
    guard isShort != logIsShort else { return }
    logIsShort = isShort
    statements.copyLog(at: isShort ? Self.logLength.short : Self.logLength.usual)
    if isShort { cutLog() }
  }

  private func noteFreePages() {
    let isAsked = logIsShort
    freePages.store(isAsked ? (try? statements.freePageCount()) ?? 0 : 0, ordering: .relaxed)
    logPages.store(isAsked ? statements.logByteCount / IndexDatabase.pageSize : 0, ordering: .relaxed)
  }

  private func write(_ change: SealedChange) throws {
    let table = statements[change.id.kind.table]
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

extension VaultError {
  static func damagedRows(bucket: Int) -> VaultError { .damaged(what: "rows of the index's bucket \(bucket)") }
  static func damagedBuckets(page: Int) -> VaultError { .damaged(what: "the index's bucket page \(page)") }
}
