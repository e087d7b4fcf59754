internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Foundation
internal import GRDB

/// The index's state while a vault is open. Used only inside ``Index``.
final class IndexSession {
  private let db: Database
  private let vault: VaultID
  private let hasher: RowHasher
  private var sealer: RecordSealer
  let rowKeys: RowKeys

  /// Numbers are taken from the root; its tags and generation change only in a commit.
  var root: RootRecord
  /// The digest of the sealed root as it was last committed.
  private(set) var committed: CommittedRoot
  /// `root.nextObject` of the last commit: objects from here on are unknown to a vault that crashes now.
  private(set) var committedNextObject: UInt64

  private var buckets: [Int: Bucket] = [:]
  private var verified = VerifiedRows()
  /// Removed by operations of the open transaction: their objects go when it is committed, and stay when it is not.
  private var removals: [PendingRemoval] = []
  /// What the running operation wants done when it is applied.
  private var operationRemovals: [PendingRemoval] = []
  private var operationEffects: [() -> Void] = []
  private var dirtyPages: Set<Int> = []
  /// What the running operation changed, for when it fails.
  private var undo: [Int: Bucket] = [:]
  private var salt: UInt32?
  private var inTransaction = false
  private var hasFailed = false
  /// Operations since the last commit.
  private(set) var operationCount = 0

  init(db: Database, keys: UnlockedKeys, vault: VaultID, root: RootRecord, isNew: Bool) {
    self.db = db
    self.vault = vault
    self.root = root
    hasher = RowHasher(metadataKey: keys.metadata)
    sealer = RecordSealer(metadataKey: keys.metadata, vault: vault)
    rowKeys = RowKeys(metadataKey: keys.metadata)
    committed = CommittedRoot(branch: root.branch, generation: root.generation, digest: [])
    committedNextObject = root.nextObject
    if isNew {
      for index in 0..<VaultFormat.bucketCount { buckets[index] = Bucket() }
      for index in 0..<VaultFormat.bucketCount { verified.begin(index) }
      dirtyPages = Set(0..<RootRecord.pageCount)
    }
  }

  convenience init(opening db: Database, keys: UnlockedKeys, vault: VaultID) throws {
    guard let sealed = try Data.fetchOne(db, sql: "SELECT value FROM root WHERE id = 1").map(Array.init) else {
      throw VaultError.damaged(what: "the root record")
    }
    self.init(
      db: db, keys: keys, vault: vault, root: RootRecord(branch: []), isNew: false)
    do {
      root = try RootRecord(decoding: open(sealed, kind: .root, row: [1]))
    } catch let error as DatabaseError {
      throw error
    } catch {
      throw VaultError.damaged(what: "the root record")
    }
    committed = CommittedRoot(branch: root.branch, generation: root.generation, digest: Digest.sha256(sealed))
    committedNextObject = root.nextObject
  }

  // MARK: Transactions

  var hasChanges: Bool {
    inTransaction && (!dirtyPages.isEmpty || !removals.isEmpty || root.nextObject != committedNextObject)
  }

  /// The object of `removal` shall go once the running operation is committed; nothing happens where it is not.
  func removeObjectAfterCommit(_ removal: PendingRemoval) { operationRemovals.append(removal) }

  /// Runs `effect` once the running operation is applied; never where it fails.
  func afterOperation(_ effect: @escaping () -> Void) { operationEffects.append(effect) }

  /// Throws after a commit that failed: what is in memory is no longer what is stored.
  func requireUsable() throws {
    guard !hasFailed else { throw VaultError.needsReopening }
  }

  func operation<Result>(_ body: () throws -> Result) throws -> Result {
    try requireUsable()
    try begin()
    try db.execute(sql: "SAVEPOINT operation")
    let rootBefore = root
    undo = [:]
    operationRemovals = []
    operationEffects = []
    do {
      let result = try body()
      try db.execute(sql: "RELEASE operation")
      operationCount += 1
      removals += operationRemovals
      for effect in operationEffects { effect() }
      operationEffects = []
      return result
    } catch {
      root = rootBefore
      operationEffects = []
      for (index, bucket) in undo {
        buckets[index] = bucket
        verified.forget(index)
      }
      do {
        try db.execute(sql: "ROLLBACK TO operation")
        try db.execute(sql: "RELEASE operation")
      } catch {
        // SQLite ends the whole transaction by itself on some errors (a full disk among them).
        abandon()
      }
      throw error
    }
  }

  private func begin() throws {
    if inTransaction { return }
    try db.execute(sql: "BEGIN IMMEDIATE")
    inTransaction = true
    operationCount = 0
    do {
      let value = Randomness.bytes(RecordSealer.saltByteCount)
      if salt == nil {
        try db.execute(sql: "INSERT INTO salt(value) VALUES (?)", arguments: [Data(value)])
        guard let index = UInt32(exactly: db.lastInsertedRowID) else { throw VaultError.damaged(what: "a salt") }
        salt = index
      }
    } catch {
      abandon()
      throw error
    }
  }

  /// Seals the changed buckets and the root, and commits. The removals are those that this commit made durable.
  func commit() throws -> (root: CommittedRoot, removals: [PendingRemoval]) {
    try requireUsable()
    do {
      for page in dirtyPages.sorted() {
        let first = page * VaultFormat.bucketsPerPage
        let states = try (first..<(first + VaultFormat.bucketsPerPage)).map { try bucket($0) }
        let sealed = try seal(Bucket.encode(states), kind: .bucket, row: UInt32(page).bigEndianBytes)
        root.pageTags[page] = Array(sealed.suffix(Sealing.tagByteCount))
        try statement("INSERT OR REPLACE INTO bucket(id, value) VALUES (?, ?)").execute(arguments: [page, Data(sealed)])
      }
      root.generation += 1
      let sealed = try seal(root.encoded(), kind: .root, row: [1])
      try statement("INSERT OR REPLACE INTO root(id, value) VALUES (1, ?)").execute(arguments: [Data(sealed)])
      try db.execute(sql: "COMMIT")
      inTransaction = false
      dirtyPages = []
      committedNextObject = root.nextObject
      committed = CommittedRoot(branch: root.branch, generation: root.generation, digest: Digest.sha256(sealed))
      defer { removals = [] }
      return (committed, removals)
    } catch {
      abandon()
      throw error
    }
  }

  /// Gives the open transaction up. What was in memory no longer fits what is stored, so the vault must be reopened.
  private func abandon() {
    hasFailed = true
    if inTransaction { try? db.execute(sql: "ROLLBACK") }
    inTransaction = false
    buckets = [:]
    verified = VerifiedRows()
    dirtyPages = []
    removals = []
  }

  // MARK: Rows

  /// The opened value of a row, or nil where there is none.
  func value(_ kind: RecordKind, _ key: RowKey) throws -> [UInt8]? {
    try verify(key.bucket)
    let found = try Data.fetchOne(
      statement(TableStatements.of(kind.table).value), arguments: [Data(key.bytes)]
    ).map(Array.init)
    try verified.require(found.map(Self.tag), kind.table, key)
    return try found.map { try open($0, kind: kind, row: key.bytes) }
  }

  func set(_ kind: RecordKind, _ key: RowKey, _ plaintext: [UInt8]) throws {
    try verify(key.bucket)
    let statements = TableStatements.of(kind.table)
    let old = try tag(statements, kind.table, key)
    let sealed = try seal(plaintext, kind: kind, row: key.bytes)
    if old == nil {
      try statement(statements.insert).execute(arguments: [Data(key.bytes), Data(sealed)])
    } else {
      try statement(statements.update).execute(arguments: [Data(sealed), Data(key.bytes)])
    }
    try change(key.bucket) { bucket in
      if let old { bucket.remove(hasher.hash(kind.table, key, tag: old)) }
      bucket.insert(hasher.hash(kind.table, key, tag: Self.tag(sealed)))
    }
    verified.set(Self.tag(sealed), kind.table, key)
  }

  func remove(_ kind: RecordKind, _ key: RowKey) throws {
    try verify(key.bucket)
    let statements = TableStatements.of(kind.table)
    guard let old = try tag(statements, kind.table, key) else { return }
    try statement(statements.delete).execute(arguments: [Data(key.bytes)])
    try change(key.bucket) { $0.remove(hasher.hash(kind.table, key, tag: old)) }
    verified.set(nil, kind.table, key)
  }

  /// At most `limit` opened rows whose keys begin with `prefix` (8 bytes), from after `last` on.
  func rows(_ kind: RecordKind, prefix: [UInt8], after last: RowKey?, limit: Int) throws -> [(RowKey, [UInt8])] {
    guard let first = RowKey(bytes: prefix + [UInt8](repeating: 0, count: 8)) else { throw MalformedBytes() }
    try verify(first.bucket)
    // A shorter key sorts before every key that it begins, a longer one behind it.
    let lower = last.map(\.bytes) ?? prefix
    let upper = prefix + [UInt8](repeating: 0xff, count: 9)
    let found = try Row.fetchAll(
      statement(TableStatements.of(kind.table).scan), arguments: [Data(lower), Data(upper), limit])
    let values = try found.map { row in
      guard let key = RowKey(bytes: try blob(row, 0)) else { throw VaultError.damaged(what: "a row's key") }
      return (key, try blob(row, 1))
    }
    let expected = verified.keys(kind.table, prefix: prefix, after: last, limit: limit, bucket: first.bucket)
    guard values.map(\.0) == expected else { throw VaultError.damaged(what: "the order of the index's rows") }
    return try values.map { key, value in
      try verified.require(Self.tag(value), kind.table, key)
      return (key, try open(value, kind: kind, row: key.bytes))
    }
  }

  private func tag(_ statements: TableStatements, _ table: RecordTable, _ key: RowKey) throws -> [UInt8]? {
    let found = try Data.fetchOne(statement(statements.tag), arguments: [Data(key.bytes)]).map(Array.init)
    try verified.require(found, table, key)
    return found
  }

  private static func tag(_ value: [UInt8]) -> [UInt8] { Array(value.suffix(Sealing.tagByteCount)) }

  /// A column that must hold a blob. A subscript of the row would stop the program where somebody stored a number.
  private func blob(_ row: Row, _ column: Int) throws -> [UInt8] {
    guard let data = Data.fromDatabaseValue(row[column]) else { throw VaultError.damaged(what: "the index's rows") }
    return Array(data)
  }

  private func statement(_ sql: String) throws -> Statement { try db.cachedStatement(sql: sql) }

  // MARK: Sealing

  private func seal(_ plaintext: [UInt8], kind: RecordKind, row: [UInt8]) throws -> [UInt8] {
    guard let salt else { throw VaultError.needsReopening }
    return try sealer.seal(plaintext, salt: salt, key: key(salt), kind: kind, row: row)
  }

  private func open(_ value: [UInt8], kind: RecordKind, row: [UInt8]) throws -> [UInt8] {
    try sealer.open(value, key: key(RecordSealer.saltIndex(of: value)), kind: kind, row: row)
  }

  private func key(_ index: UInt32) throws -> SecretKey {
    try sealer.key(index) {
      try Data.fetchOne(statement("SELECT value FROM salt WHERE id = ?"), arguments: [index]).map(Array.init)
    }
  }

  // MARK: Buckets

  private func change(_ index: Int, _ body: (inout Bucket) -> Void) throws {
    var value = try bucket(index)
    if undo[index] == nil { undo[index] = value }
    body(&value)
    buckets[index] = value
    dirtyPages.insert(index / VaultFormat.bucketsPerPage)
  }

  /// What a bucket must hold, from its page, which must carry the tag that the root names.
  private func bucket(_ index: Int) throws -> Bucket {
    if let known = buckets[index] { return known }
    let page = index / VaultFormat.bucketsPerPage
    guard
      let sealed = try Data.fetchOne(statement("SELECT value FROM bucket WHERE id = ?"), arguments: [page])
        .map(Array.init),
      equalInConstantTime(Array(sealed.suffix(Sealing.tagByteCount)), root.pageTags[page]),
      let opened = try? open(sealed, kind: .bucket, row: UInt32(page).bigEndianBytes)
    else { throw VaultError.damaged(what: "the index's bucket page \(page)") }
    for (offset, value) in try Bucket.decodePage(opened).enumerated() {
      let position = page * VaultFormat.bucketsPerPage + offset
      if buckets[position] == nil { buckets[position] = value }
    }
    guard let value = buckets[index] else { throw VaultError.damaged(what: "the index's bucket page \(page)") }
    return value
  }

  /// Compares a bucket's rows with what must be there, once, before the first read or write in it: a write without
  /// that would take a replayed row into the new sum.
  private func verify(_ index: Int) throws {
    if verified.contains(index) { return }
    let expected = try bucket(index)
    verified.begin(index)
    do {
      try scan(index, expecting: expected)
    } catch {
      verified.forget(index)
      throw error
    }
  }

  private func scan(_ index: Int, expecting expected: Bucket) throws {
    var found = Bucket()
    let lower = [UInt8(index >> 4), UInt8(index & 15) << 4]
    let upper =
      index + 1 < VaultFormat.bucketCount
      ? [UInt8((index + 1) >> 4), UInt8((index + 1) & 15) << 4] : [UInt8](repeating: 0xff, count: RowKey.byteCount + 1)
    for table in RecordTable.allCases {
      var previous: RowKey?
      let rows = try Row.fetchCursor(
        statement(TableStatements.of(table).tags), arguments: [Data(lower), Data(upper)])
      while let row = try rows.next() {
        // Strictly ascending, so that a row that a broken tree shows twice does not cancel itself out.
        guard let key = RowKey(bytes: try blob(row, 0)), previous.map({ $0 < key }) ?? true else {
          throw VaultError.damaged(what: "the order of the index's rows")
        }
        previous = key
        let tag = try blob(row, 1)
        found.insert(hasher.hash(table, key, tag: tag))
        verified.set(tag, table, key)
      }
    }
    guard found == expected else { throw VaultError.damaged(what: "rows of the index's bucket \(index)") }
  }
}
