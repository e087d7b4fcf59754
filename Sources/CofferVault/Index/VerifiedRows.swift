internal import CofferSystem

/// The rows of the buckets that were verified: every later answer of the index is held against them.
///
/// A scan and a look-up take different ways through SQLite's tree. In a page whose cells somebody put out of order, the
/// scan can see the rows that belong there while the look-up finds an older one, or nothing. What was scanned is
/// therefore remembered, and what is looked up must be in it.
///
/// Memory is bounded: when many rows are remembered, the buckets that were verified first are forgotten, and verified
/// again when they are next needed.
struct VerifiedRows {
  private struct Key: Hashable, Comparable {
    let high: UInt64
    let low: UInt64

    init(_ key: RowKey) {
      high = key.bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
      low = key.bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
    }

    var rowKey: RowKey? { RowKey(bytes: high.bigEndianBytes + low.bigEndianBytes) }

    static func < (left: Key, right: Key) -> Bool { (left.high, left.low) < (right.high, right.low) }
  }

  private struct Rows {
    /// The first 8 bytes of each row's tag: an older row of the same key has another tag.
    var entries: [Key: UInt64] = [:]
    var records: [Key: UInt64] = [:]

    var count: Int { entries.count + records.count }

    subscript(table: RecordTable) -> [Key: UInt64] {
      get { table == .entry ? entries : records }
      _modify {
        if table == .entry { yield &entries } else { yield &records }
      }
    }
  }

  /// Rows remembered at most, about 32 bytes each, unless one bucket alone has more.
  private static let limit = 65_536
  private var buckets: [Int: Rows] = [:]
  /// In the order of verification.
  private var order: [Int] = []
  private var count = 0

  func contains(_ bucket: Int) -> Bool { buckets[bucket] != nil }

  /// Begins to remember a bucket, and forgets others where there are too many rows.
  mutating func begin(_ bucket: Int) {
    var forgotten = 0
    while count > Self.limit, forgotten < order.count {
      count -= buckets.removeValue(forKey: order[forgotten])?.count ?? 0
      forgotten += 1
    }
    order.removeFirst(forgotten)
    buckets[bucket] = Rows()
    order.append(bucket)
  }

  mutating func forget(_ bucket: Int) {
    guard let rows = buckets.removeValue(forKey: bucket) else { return }
    count -= rows.count
    order.removeAll { $0 == bucket }
  }

  /// Remembers a row's tag, or with nil that there is no such row.
  mutating func set(_ tag: [UInt8]?, _ table: RecordTable, _ key: RowKey) {
    guard buckets[key.bucket] != nil else { return }
    let old = buckets[key.bucket]?[table].updateValue(Self.short(tag ?? []), forKey: Key(key))
    if old == nil { count += 1 }
    if tag == nil {
      buckets[key.bucket]?[table][Key(key)] = nil
      count -= 1
    }
  }

  /// Throws unless `tag` (nil: no row) is what was seen for the key when its bucket was verified.
  func require(_ tag: [UInt8]?, _ table: RecordTable, _ key: RowKey) throws(VaultError) {
    guard let rows = buckets[key.bucket], rows[table][Key(key)] == tag.map(Self.short) else {
      throw .damaged(what: "the order of the index's rows")
    }
  }

  /// The keys that begin with `prefix`, from after `last` on, ascending, at most `limit`.
  func keys(_ table: RecordTable, prefix: [UInt8], after last: RowKey?, limit: Int, bucket: Int) -> [RowKey] {
    let high = prefix.reduce(0) { $0 << 8 | UInt64($1) }
    let lower = last.map { Key($0) }
    let found = (buckets[bucket]?[table].keys).map { keys in
      keys.filter { key in key.high == high && (lower.map { $0 < key } ?? true) }
    }
    return (found ?? []).sorted().prefix(limit).compactMap(\.rowKey)
  }

  private static func short(_ tag: [UInt8]) -> UInt64 { tag.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
}
