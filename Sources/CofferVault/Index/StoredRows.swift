internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Foundation
internal import GRDB

/// The rows of the last commit: what lies in SQLite, opened and held against the buckets, the bucket pages and the root.
///
/// The only place that reads and writes rows. Used only under the index's lock, but for ``store(_:ended:)``.
///
/// A commit goes in three steps: ``prepare(_:numbers:generation:)`` gathers what it needs to know, `store` seals and writes,
/// beside operations that find what they need in memory, and ``takeOver(_:)`` or ``giveUp(_:)`` ends it. In between everything
/// here is as the last commit left it.
final class StoredRows {
  /// Held while SQLite is used. Taken under the index's lock by who reads, and never the other way round.
  private let connection = NSLock()
  /// Calls of `reading` that are under way, one within the other.
  private var readingDepth = 0
  /// Called before anybody reads: takes over what was stored meanwhile.
  var beforeReading: () -> Void = {}
  private let statements: IndexStatements
  private let hasher: RowHasher
  private var sealer: RecordSealer

  /// As it was last committed.
  private(set) var root: RootRecord
  /// As it is stored.
  private(set) var sealedRoot: [UInt8] = []

  /// Bucket pages that were read, each checked against the root. The root's own buckets hold in place of theirs.
  private var pages: [Int: [Bucket]] = [:]
  private var verified = VerifiedRows()
  /// Buckets that a commit leaves in the root at most. Tests leave none, so that there are pages.
  var heldBucketLimit = RootRecord.bucketLimit
  /// The salt of this opening, once it is committed.
  private var salt: UInt32?

  /// For a new index: its first commit writes the first root.
  init(_ db: Database, keys: UnlockedKeys, vault: VaultID, new root: RootRecord) throws {
    statements = try IndexStatements(db)
    hasher = RowHasher(metadataKey: keys.metadata)
    sealer = RecordSealer(metadataKey: keys.metadata, vault: vault)
    self.root = root
  }

  /// Opens the root. Throws `damaged` where it is not what a commit of this vault wrote.
  init(_ db: Database, keys: UnlockedKeys, vault: VaultID) throws {
    statements = try IndexStatements(db)
    hasher = RowHasher(metadataKey: keys.metadata)
    sealer = RecordSealer(metadataKey: keys.metadata, vault: vault)
    root = RootRecord(branch: [])
    guard let sealed = try statements.root.first(body: { Array(try $0[0]) }) else {
      throw VaultError.damaged(what: "the root record")
    }
    do {
      let plaintext = try sealed.withUnsafeBytes { try open($0, kind: .root, row: Self.rootRow) }
      root = try RootRecord(decoding: plaintext)
    } catch let error as DatabaseError {
      throw error
    } catch {
      throw VaultError.damaged(what: "the root record")
    }
    sealedRoot = sealed
  }

  /// Ends every use of the connection.
  func close() { statements.close() }

  /// See ``VerifiedRows/remembersMore``.
  var remembersMore: Bool {
    get { verified.remembersMore }
    set { verified.remembersMore = newValue }
  }

  // MARK: Reading

  /// Runs `body` while no commit writes: what it finds in memory and in SQLite is of the same commit, until it returns.
  func reading<Result>(_ body: () throws -> Result) rethrows -> Result {
    if readingDepth == 0 {
      connection.lock()
      beforeReading()
    }
    readingDepth += 1
    defer {
      readingDepth -= 1
      if readingDepth == 0 { connection.unlock() }
    }
    return try body()
  }

  /// Every bucket is read and verified again before it is next used, but for those that `isNeeded` is true of.
  func forgetVerified(unless isNeeded: (Int) -> Bool) {
    verified.forgetAll(unless: isNeeded)
    pages = pages.filter { page, _ in
      let first = page * VaultFormat.bucketsPerPage
      return (first..<first + VaultFormat.bucketsPerPage).contains(where: isNeeded)
    }
  }

  /// How many rows a bucket has, held against its sum.
  func rowCount(of bucket: Int) throws -> UInt64 {
    try verify(bucket)
    return UInt64(try self.bucket(bucket).count)
  }

  /// The opened value of a row, or nil where there is none.
  func value(_ kind: RecordKind, _ key: RowKey) throws -> [UInt8]? {
    guard try contains(kind, key) else { return nil }
    return try reading {
      // Who waited for a commit may have to look again.
      guard try contains(kind, key), let tag = verified.tag(kind.table, key) else { return nil }
      let found = try key.withBytes { row in
        try statements[kind.table].value.first(.bytes(row)) { columns in
          let value = try columns[0]
          guard RowTag(endOf: value) == tag else { throw Self.disorder }
          return try open(value, kind: kind, row: row)
        }
      }
      guard let found else { throw Self.disorder }
      return found
    }
  }

  func contains(_ kind: RecordKind, _ key: RowKey) throws -> Bool {
    try verify(key.bucket)
    return verified.tag(kind.table, key) != nil
  }

  /// The keys that begin with `prefix`, from after `last` on, ascending, at most `limit`.
  func keys(_ kind: RecordKind, prefix: RowPrefix, after last: RowKey?, limit: Int) throws -> [RowKey] {
    try verify(RowKey.bucket(of: prefix.high))
    return verified.rows(kind.table, prefix: prefix, after: last, limit: limit).map(\.key)
  }

  /// The opened values of the `count` rows from after `first` up to and with `last`, which begin with the same prefix. The
  /// caller is `reading`.
  func values(_ kind: RecordKind, after first: RowKey?, through last: RowKey, count: Int) throws -> [RowKey: [UInt8]] {
    let lower = first?.bytes ?? last.high.bigEndianBytes
    let expected = verified.rows(kind.table, prefix: RowPrefix(high: last.high), after: first, limit: count)
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

  private static let disorder = VaultError.damaged(what: "the order of the index's rows")

  // MARK: Committing

  /// A row that a commit stores, or removes where `record` is nil.
  struct Change: Sendable {
    let id: RowID
    let record: Record?
  }

  /// What a commit is about to store, and what it needs to know of the last one for it.
  struct Preparation: Sendable {
    let changes: [Change]
    /// The tags of the stored rows that `changes` replace.
    fileprivate let replaced: [RowTag?]
    /// What the root is to hold of buckets, and the pages that take the others, as the last commit left them.
    fileprivate var held: [Int: Bucket]
    fileprivate var pages: [Int: [Bucket]]
    /// The buckets of `changes`, as the last commit left them.
    fileprivate var buckets: [Int: Bucket]
    fileprivate var root: RootRecord
    fileprivate let salt: UInt32
    /// The salt's value, where it is not stored yet.
    fileprivate let newSalt: [UInt8]?
    fileprivate let key: RecordKey
  }

  /// What a commit stored: what becomes of this when it is taken over.
  struct Stored: Sendable {
    fileprivate let preparation: Preparation
    fileprivate let tags: [RowTag?]
    fileprivate let sealedRoot: [UInt8]
  }

  /// Gathers what a commit of `changes`, which are in the order of the tables' trees, needs. `numbers` gives the counters of
  /// the new root.
  func prepare(_ changes: [Change], numbers: RootRecord, generation: UInt64) throws -> Preparation {
    try reading {
      var next = root
      next.take(numbers)
      next.generation = generation
      var newSalt: [UInt8]?
      let salt = try salt ?? drawSalt(&next, &newSalt)
      let key = try recordKey(salt) { newSalt }
      var buckets: [Int: Bucket] = [:]
      // Before the first write in a bucket, because a write would take a replayed row into the new sum.
      let replaced = try changes.map { change in
        let number = change.id.key.bucket
        try verify(number)
        if buckets[number] == nil { buckets[number] = try bucket(number) }
        return verified.tag(change.id.kind.table, change.id.key)
      }
      let (held, pages) = try placeBuckets(buckets)
      return Preparation(
        changes: changes, replaced: replaced, held: held, pages: pages, buckets: buckets, root: next, salt: salt,
        newSalt: newSalt, key: key)
    }
  }

  /// Seals and stores what was prepared, in one transaction. Needs no lock of the index's; who reads waits while SQLite writes.
  ///
  /// Where it throws, SQLite holds the last commit.
  /// - Parameter ended: called with the outcome before anybody reads again.
  func store(_ preparation: Preparation, ended: (Result<Stored, any Error>) -> Void) {
    let sealed: Result<SealedCommit, any Error> = Result { try SealedCommit(preparation, hasher) }
    connection.lock()
    defer { connection.unlock() }
    ended(
      Result {
        let sealed = try sealed.get()
        try write(sealed, preparation)
        var stored = preparation
        (stored.root, stored.pages) = (sealed.root, sealed.pages)
        return Stored(preparation: stored, tags: sealed.changes.map(\.tag), sealedRoot: sealed.sealedRoot)
      })
  }

  private func write(_ sealed: SealedCommit, _ preparation: Preparation) throws {
    try statements.begin.run()
    do {
      if let salt = preparation.newSalt {
        try salt.withUnsafeBytes { try statements.storeSalt.run(.integer(Int64(preparation.salt)), .bytes($0)) }
      }
      for (position, change) in sealed.changes.enumerated() {
        try write(change, preparation.changes[position].id, isStored: preparation.replaced[position] != nil)
      }
      for (page, value) in sealed.sealedPages {
        try value.withUnsafeBytes { try statements.storeBucket.run(.integer(Int64(page)), .bytes($0)) }
      }
      try sealed.sealedRoot.withUnsafeBytes { try statements.storeRoot.run(.bytes($0)) }
      try statements.commit.run()
    } catch {
      // SQLite ends the transaction by itself on some errors (a full disk among them); then there is nothing to undo.
      try? statements.rollback.run()
      throw error
    }
  }

  private func write(_ change: SealedChange, _ id: RowID, isStored: Bool) throws {
    let table = statements[id.kind.table]
    try id.key.withBytes { row in
      try change.value.withUnsafeBytes { value in
        switch (isStored, !value.isEmpty) {
        case (false, true): try table.insert.run(.bytes(row), .bytes(value))
        case (true, true): try table.update.run(.bytes(row), .bytes(value))
        case (true, false): try table.delete.run(.bytes(row))
        case (false, false): break
        }
      }
    }
  }

  /// What was stored is the last commit from now on.
  func takeOver(_ stored: Stored) {
    let preparation = stored.preparation
    salt = preparation.salt
    root = preparation.root
    pages.merge(preparation.pages) { $1 }
    sealedRoot = stored.sealedRoot
    for (change, tag) in zip(preparation.changes, stored.tags) {
      verified.set(tag, change.id.kind.table, change.id.key)
    }
  }

  /// What was prepared is not stored: its rows are read and verified again before they are next used.
  func giveUp(_ preparation: Preparation) {
    if preparation.newSalt != nil { sealer.forget(preparation.salt) }
    for bucket in preparation.buckets.keys { verified.forget(bucket) }
  }

  /// The next commit's generation will be above `generation`.
  func raiseGeneration(to generation: UInt64) { root.generation = max(root.generation, generation) }

  private func drawSalt(_ next: inout RootRecord, _ value: inout [UInt8]?) throws -> UInt32 {
    let index = next.nextSalt
    guard index < .max else { throw VaultError.damaged(what: "a salt") }
    value = Randomness.bytes(RecordSealer.saltByteCount)
    sealer.forget(index)
    next.nextSalt += 1
    return index
  }

  /// Where the buckets go that differ from their pages: into the root, or, where they are too many for it, into their pages. A
  /// page that cannot be opened stays as it is, and the root goes on to hold its buckets: what is damaged elsewhere keeps
  /// nobody from a commit.
  private func placeBuckets(_ changed: [Int: Bucket]) throws -> (held: [Int: Bucket], pages: [Int: [Bucket]]) {
    var held = root.buckets.merging(changed) { $1 }
    var pages: [Int: [Bucket]] = [:]
    if held.count > heldBucketLimit {
      for (page, numbers) in Dictionary(grouping: held.keys, by: { $0 / VaultFormat.bucketsPerPage }) {
        guard var buckets = try? self.page(page) else { continue }
        for number in numbers {
          if let bucket = held.removeValue(forKey: number) { buckets[number % VaultFormat.bucketsPerPage] = bucket }
        }
        pages[page] = buckets
      }
      // Those whose pages could not be opened: the root held them before, for no other could be changed.
      guard held.count <= RootRecord.bucketLimit else { throw Self.damagedPage(held.keys.first ?? 0) }
    }
    return (held, pages)
  }

  // MARK: Sealing

  fileprivate static let rootRow: [UInt8] = [1]

  private func open(_ value: UnsafeRawBufferPointer, kind: RecordKind, row: [UInt8]) throws -> [UInt8] {
    try row.withUnsafeBytes { try open(value, kind: kind, row: $0) }
  }

  private func open(_ value: UnsafeRawBufferPointer, kind: RecordKind, row: UnsafeRawBufferPointer) throws -> [UInt8] {
    try recordKey(RecordSealer.saltIndex(of: value)).open(value, kind: kind, row: row)
  }

  private func recordKey(_ index: UInt32, new value: () -> [UInt8]? = { nil }) throws -> RecordKey {
    try sealer.key(index) { try value() ?? statements.salt.first(.integer(Int64(index))) { Array(try $0[0]) } }
  }

  // MARK: Buckets

  /// What a bucket must hold: the root's word, else its page's.
  private func bucket(_ index: Int) throws -> Bucket {
    if let held = root.buckets[index] { return held }
    let (page, offset) = index.quotientAndRemainder(dividingBy: VaultFormat.bucketsPerPage)
    return try self.page(page)[offset]
  }

  /// The buckets of a page as it was sealed last; it must carry the tag that the root names.
  private func page(_ page: Int) throws -> [Bucket] {
    if let known = pages[page] { return known }
    return try reading { try readPage(page) }
  }

  private func readPage(_ page: Int) throws -> [Bucket] {
    if let known = pages[page] { return known }
    let buckets: [Bucket]
    if let tag = root.pageTag(page) {
      let sealed = try statements.bucket.first(.integer(Int64(page))) { Array(try $0[0]) }
      guard let sealed, equalInConstantTime(Array(sealed.suffix(Sealing.tagByteCount)), tag),
        let opened = try? sealed.withUnsafeBytes({
          try open($0, kind: .bucket, row: UInt32(page).bigEndianBytes)
        })
      else { throw Self.damagedPage(page) }
      buckets = try Bucket.decodePage(opened)
    } else {
      buckets = [Bucket](repeating: Bucket(), count: VaultFormat.bucketsPerPage)
    }
    pages[page] = buckets
    return buckets
  }

  private static func damagedBucket(_ index: Int) -> VaultError {
    .damaged(what: "rows of the index's bucket \(index)")
  }

  private static func damagedPage(_ page: Int) -> VaultError { .damaged(what: "the index's bucket page \(page)") }

  /// Compares a bucket's rows with what must be there, once, before the first read or write in it.
  func verify(_ index: Int) throws {
    if verified.use(index) { return }
    try reading {
      if verified.use(index) { return }
      let expected = try bucket(index)
      verified.begin(index)
      do {
        try scan(index, expecting: expected)
      } catch {
        verified.forget(index)
        throw error
      }
    }
  }

  private func scan(_ index: Int, expecting expected: Bucket) throws {
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
            guard found.count < expected.count else { throw Self.damagedBucket(index) }
            guard let key = RowKey(try columns[0]),
              let tag = RowTag(endOf: try columns[1]), key.bucket == index,
              verified.append(tag, table, key)
            else { throw Self.disorder }
            found.insert(hasher.hash(table, key, tag))
          }
        }
      }
    }
    guard found == expected else { throw Self.damagedBucket(index) }
  }
}

/// A row as a commit writes it, and what it changes in its bucket.
private struct SealedChange: Sendable {
  /// Empty where the row goes.
  let value: [UInt8]
  let tag: RowTag?
  /// The exclusive or of the old row's hash and the new one's.
  let hash: SIMD4<UInt64>

  init(_ change: StoredRows.Change, replacing old: RowTag?, _ key: RecordKey, _ hasher: RowHasher) throws {
    let id = change.id
    var hash = SIMD4<UInt64>(repeating: 0)
    if let old { hash ^= hasher.hash(id.kind.table, id.key, old) }
    if let record = change.record {
      let plaintext = record.encoded
      let sealed = try id.key.withBytes { try key.seal(plaintext, kind: id.kind, row: $0) }
      value = sealed
      tag = sealed.withUnsafeBytes { RowTag(endOf: $0) }
      if let tag { hash ^= hasher.hash(id.kind.table, id.key, tag) }
    } else {
      value = []
      tag = nil
    }
    self.hash = hash
  }
}

/// A commit as it is written.
private struct SealedCommit {
  let changes: [SealedChange]
  /// Pages with their buckets, and as they are stored.
  let pages: [Int: [Bucket]]
  let sealedPages: [(page: Int, value: [UInt8])]
  let root: RootRecord
  let sealedRoot: [UInt8]

  init(_ preparation: StoredRows.Preparation, _ hasher: RowHasher) throws {
    let key = preparation.key
    var (buckets, pages, root) = (preparation.buckets, preparation.pages, preparation.root)
    changes = try zip(preparation.changes, preparation.replaced).map { change, replaced in
      let sealed = try SealedChange(change, replacing: replaced, key, hasher)
      let number = change.id.key.bucket
      var bucket = buckets[number] ?? Bucket()
      bucket.sum ^= sealed.hash
      bucket.count &+= (sealed.tag != nil ? 1 : 0) &- (replaced != nil ? 1 : 0)
      buckets[number] = bucket
      return sealed
    }
    var held = preparation.held
    for (number, bucket) in buckets {
      let (page, place) = number.quotientAndRemainder(dividingBy: VaultFormat.bucketsPerPage)
      if held[number] != nil { held[number] = bucket } else { pages[page]?[place] = bucket }
    }
    root.hold(held)
    sealedPages = try pages.sorted { $0.key < $1.key }.map { page, buckets in
      let value = try UInt32(page).bigEndianBytes.withUnsafeBytes {
        try key.seal(Bucket.encode(buckets), kind: .bucket, row: $0)
      }
      root.setPageTag(page, to: value.suffix(Sealing.tagByteCount))
      return (page, value)
    }
    sealedRoot = try StoredRows.rootRow.withUnsafeBytes { try key.seal(root.encoded(), kind: .root, row: $0) }
    self.pages = pages
    self.root = root
  }
}
