internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import GRDB

/// The rows of the last commit: what lies in SQLite, opened and held against the buckets, the bucket pages and the root.
///
/// The only place that reads and writes rows. Used only under the index's lock.
final class StoredRows {
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
    try verify(key.bucket)
    guard let tag = verified.tag(kind.table, key) else { return nil }
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

  func contains(_ kind: RecordKind, _ key: RowKey) throws -> Bool {
    try verify(key.bucket)
    return verified.tag(kind.table, key) != nil
  }

  /// The keys that begin with `prefix`, from after `last` on, ascending, at most `limit`.
  func keys(_ kind: RecordKind, prefix: RowPrefix, after last: RowKey?, limit: Int) throws -> [RowKey] {
    try verify(RowKey.bucket(of: prefix.high))
    return verified.rows(kind.table, prefix: prefix, after: last, limit: limit).map(\.key)
  }

  /// The opened values of the `count` rows from after `first` up to and with `last`, which begin with the same prefix.
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

  /// Stores `changes`, the buckets and the root in one transaction. `numbers` gives the counters of the new root.
  ///
  /// Where it throws, SQLite holds the last commit, and so does this.
  func commit(_ changes: [Change], numbers: RootRecord) throws {
    var next = numbers
    next.takePageTags(of: root)
    var changed: [Int: Bucket] = [:]
    try statements.begin.run()
    do {
      let salt = try salt ?? drawSalt(&next)
      let key = try recordKey(salt)
      for start in stride(from: 0, to: changes.count, by: Self.portion) {
        try store(changes[start..<min(start + Self.portion, changes.count)], key, &changed)
      }
      let sealedPages = try storeBuckets(changed, key, &next)
      next.generation = root.generation + 1
      let sealed = try Self.rootRow.withUnsafeBytes { try key.seal(next.encoded(), kind: .root, row: $0) }
      try sealed.withUnsafeBytes { try statements.storeRoot.run(.bytes($0)) }
      try statements.commit.run()
      self.salt = salt
      root = next
      pages.merge(sealedPages) { $1 }
      sealedRoot = sealed
    } catch {
      // SQLite ends the transaction by itself on some errors (a full disk among them); then there is nothing to undo.
      try? statements.rollback.run()
      sealer.forget(numbers.nextSalt)
      for change in changes { verified.forget(change.id.key.bucket) }
      throw error
    }
  }

  /// The next commit's generation will be above `generation`.
  func raiseGeneration(to generation: UInt64) { root.generation = max(root.generation, generation) }

  /// Rows that are sealed before they are written: bounds the memory of a commit.
  private static let portion = 128

  private func store(
    _ changes: ArraySlice<Change>, _ key: RecordKey, _ changed: inout [Int: Bucket]
  ) throws {
    // Before the first write in a bucket, because a write would take a replayed row into the new sum.
    let old = try changes.map { change in
      try verify(change.id.key.bucket)
      return verified.tag(change.id.kind.table, change.id.key)
    }
    let first = changes.startIndex
    let sealed = try concurrentMap(changes.count) { [hasher] position in
      try SealedChange(changes[first + position], replacing: old[position], key, hasher)
    }
    for (position, change) in sealed.enumerated() {
      let id = changes[first + position].id
      try id.key.withBytes { row in
        let table = statements[id.kind.table]
        try change.value.withUnsafeBytes { value in
          switch (old[position] != nil, !value.isEmpty) {
          case (false, true): try table.insert.run(.bytes(row), .bytes(value))
          case (true, true): try table.update.run(.bytes(row), .bytes(value))
          case (true, false): try table.delete.run(.bytes(row))
          case (false, false): break
          }
        }
      }
      verified.set(change.tag, id.kind.table, id.key)
      var bucket = try changed[id.key.bucket] ?? bucket(id.key.bucket)
      bucket.sum ^= change.hash
      bucket.count &+= (change.tag != nil ? 1 : 0) &- (old[position] != nil ? 1 : 0)
      changed[id.key.bucket] = bucket
    }
  }

  private func drawSalt(_ next: inout RootRecord) throws -> UInt32 {
    let index = next.nextSalt
    guard index < .max else { throw VaultError.damaged(what: "a salt") }
    let value = Randomness.bytes(RecordSealer.saltByteCount)
    try value.withUnsafeBytes { try statements.storeSalt.run(.integer(Int64(index)), .bytes($0)) }
    sealer.forget(index)
    next.nextSalt += 1
    return index
  }

  /// Puts the buckets that differ from their pages into the root, or, where they are too many for it, into their pages,
  /// which it returns. A page that cannot be opened stays as it is, and the root goes on to hold its buckets: what is damaged
  /// elsewhere keeps nobody from a commit.
  private func storeBuckets(
    _ changed: [Int: Bucket], _ key: RecordKey, _ next: inout RootRecord
  ) throws -> [Int: [Bucket]] {
    var held = root.buckets.merging(changed) { $1 }
    var sealedPages: [Int: [Bucket]] = [:]
    if held.count > heldBucketLimit {
      for (page, numbers) in Dictionary(grouping: held.keys, by: { $0 / VaultFormat.bucketsPerPage }) {
        guard var buckets = try? self.page(page) else { continue }
        for number in numbers {
          if let bucket = held.removeValue(forKey: number) { buckets[number % VaultFormat.bucketsPerPage] = bucket }
        }
        sealedPages[page] = buckets
      }
      // Those whose pages could not be opened: the root held them before, for no other could be changed.
      guard held.count <= RootRecord.bucketLimit else { throw Self.damagedPage(held.keys.first ?? 0) }
    }
    next.hold(held)
    for (page, buckets) in sealedPages.sorted(by: { $0.key < $1.key }) { try storePage(page, buckets, key, &next) }
    return sealedPages
  }

  private func storePage(_ page: Int, _ buckets: [Bucket], _ key: RecordKey, _ next: inout RootRecord) throws {
    let sealed = try UInt32(page).bigEndianBytes.withUnsafeBytes {
      try key.seal(Bucket.encode(buckets), kind: .bucket, row: $0)
    }
    next.setPageTag(page, to: sealed.suffix(Sealing.tagByteCount))
    try sealed.withUnsafeBytes { try statements.storeBucket.run(.integer(Int64(page)), .bytes($0)) }
  }

  // MARK: Sealing

  private static let rootRow: [UInt8] = [1]

  private func open(_ value: UnsafeRawBufferPointer, kind: RecordKind, row: [UInt8]) throws -> [UInt8] {
    try row.withUnsafeBytes { try open(value, kind: kind, row: $0) }
  }

  private func open(_ value: UnsafeRawBufferPointer, kind: RecordKind, row: UnsafeRawBufferPointer) throws -> [UInt8] {
    try recordKey(RecordSealer.saltIndex(of: value)).open(value, kind: kind, row: row)
  }

  private func recordKey(_ index: UInt32) throws -> RecordKey {
    try sealer.key(index) { try statements.salt.first(.integer(Int64(index))) { Array(try $0[0]) } }
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
