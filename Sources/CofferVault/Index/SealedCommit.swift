internal import CofferCrypto
internal import CofferSystem

/// A commit as it is written.
struct SealedCommit: Sendable {
  let changes: [SealedChange]
  /// Pages with their buckets, and as they are stored.
  let pages: [Int: [Bucket]]
  let sealedPages: [(page: Int, value: [UInt8])]
  let root: RootRecord
  /// What it changes of the root.
  let rootChange: RootChange
  private let key: RecordKey
  /// The salt of this opening, where it is not stored yet.
  let newSalt: (index: UInt32, value: [UInt8])?

  init(_ preparation: StoredRows.Preparation, _ hasher: RowHasher) throws {
    let key = preparation.key
    var (buckets, pages, root) = (preparation.rows.buckets, preparation.pages, preparation.root)
    changes = try zip(preparation.changes, preparation.rows.replaced).map { change, replaced in
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
    root.drawCommit()
    sealedPages = try pages.sorted { $0.key < $1.key }.map { page, buckets in
      let value = try UInt32(page).bigEndianBytes.withUnsafeBytes {
        try key.seal(Bucket.encode(buckets), kind: .bucket, row: $0)
      }
      root.setPageTag(page, to: value.suffix(Sealing.tagByteCount))
      return (page, value)
    }
    rootChange = RootChange(root, buckets: pages.isEmpty ? buckets : held)
    self.key = key
    self.pages = pages
    self.root = root
    newSalt = preparation.newSalt.map { (key.salt, $0) }
  }

  /// The root as SQLite has it. Not for the journal, which needs only what changed.
  func sealedRoot() throws -> (value: [UInt8], salt: UInt32) { (try key.seal(root), key.salt) }
}

/// A row as a commit writes it, and what it changes in its bucket.
struct SealedChange: Sendable {
  let row: RowChange
  let tag: RowTag?
  /// The exclusive or of the old row's hash and the new one's.
  let hash: SIMD4<UInt64>

  init(_ change: StoredRows.Change, replacing old: RowTag?, _ key: RecordKey, _ hasher: RowHasher) throws {
    let id = change.id
    var hash = SIMD4<UInt64>(repeating: 0)
    var value: [UInt8] = []
    if let old { hash ^= hasher.hash(id.kind.table, id.key, old) }
    if let record = change.record {
      let plaintext = record.encoded
      let (kind, rowKey) = (id.kind, id.key)
      value = try rowKey.withBytes { try key.seal(plaintext, kind: kind, row: $0) }
      tag = value.withUnsafeBytes { RowTag(endOf: $0) }
      if let tag { hash ^= hasher.hash(id.kind.table, id.key, tag) }
    } else {
      tag = nil
    }
    row = RowChange(id: id, isStored: old != nil, value: value)
    self.hash = hash
  }
}
