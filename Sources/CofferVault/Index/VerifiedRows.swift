/// The rows of the buckets that were verified: every later answer of the index is held against them.
///
/// A scan and a look-up take different ways through SQLite's tree. In a page whose cells somebody put out of order, the
/// scan can see the rows that belong there while the look-up finds an older one, or nothing. What was scanned is
/// therefore remembered, and what is looked up must be in it; what is not in it needs no look-up.
///
/// Memory is bounded: when many rows are remembered, buckets that were not used lately are forgotten, and verified again
/// when they are next needed.
struct VerifiedRows {
  /// What a scan of one bucket found, in both tables.
  struct Scan: Sendable {
    fileprivate var entries = SortedRows()
    fileprivate var records = SortedRows()

    var count: Int { entries.count + records.count }

    /// Adds a row that the scan found; `false` where the scan is not strictly ascending.
    mutating func append(_ tag: RowTag, _ table: RecordTable, _ key: RowKey) -> Bool {
      table == .entry ? entries.append(key, tag) : records.append(key, tag)
    }
  }

  /// Those of one bucket. By reference: to change them is not to change the dictionary, which each operation would do often.
  private final class Rows {
    let bucket: Int
    private var rows: Scan
    /// Since it was last thought of forgetting it.
    var isUsed = true

    init(_ bucket: Int, _ rows: Scan) { (self.bucket, self.rows) = (bucket, rows) }

    var count: Int { rows.count }

    subscript(table: RecordTable) -> SortedRows { table == .entry ? rows.entries : rows.records }

    func set(_ tag: RowTag?, _ table: RecordTable, _ key: RowKey) {
      if table == .entry { rows.entries.set(tag, for: key) } else { rows.records.set(tag, for: key) }
    }
  }

  /// For who goes through large trees: to verify a bucket anew at every third name takes longer than the work on it.
  var remembersMore = false
  /// Rows remembered at most, about 40 bytes each, unless one bucket alone has more.
  private var limit: Int { remembersMore ? 262_144 : 131_072 }
  private var buckets: [Int: Rows] = [:]
  /// In the order in which they are thought of to be forgotten.
  private var order: ArraySlice<Int> = []
  private var count = 0
  /// Is in `buckets`.
  private var lastUsed: Rows?

  /// Whether a bucket is remembered; it is then for a while longer.
  mutating func use(_ bucket: Int) -> Bool {
    if bucket == lastUsed?.bucket { return true }
    guard let rows = buckets[bucket] else { return false }
    rows.isUsed = true
    lastUsed = rows
    return true
  }

  /// Remembers a bucket, and forgets others where there are too many rows.
  mutating func insert(_ scan: Scan, of bucket: Int) {
    forget(bucket)
    // Each is thought of once, so that what is in use all the time stays, however large it is.
    var left = order.count
    while count > limit, left > 0, let first = order.popFirst() {
      left -= 1
      if let rows = buckets[first], rows.isUsed {
        rows.isUsed = false
        order.append(first)
      } else {
        drop(first)
      }
    }
    buckets[bucket] = Rows(bucket, scan)
    order.append(bucket)
    count += scan.count
  }

  mutating func forget(_ bucket: Int) {
    guard buckets[bucket] != nil else { return }
    drop(bucket)
    order.removeAll { $0 == bucket }
  }

  mutating func forgetAll(unless isNeeded: (Int) -> Bool) {
    for bucket in buckets.keys where !isNeeded(bucket) { drop(bucket) }
    let kept = buckets
    order.removeAll { kept[$0] == nil }
  }

  private mutating func drop(_ bucket: Int) {
    count -= buckets.removeValue(forKey: bucket)?.count ?? 0
    if lastUsed?.bucket == bucket { lastUsed = nil }
  }

  /// Remembers a row's tag, or with nil that there is no such row.
  mutating func set(_ tag: RowTag?, _ table: RecordTable, _ key: RowKey) {
    guard let rows = rows(of: key.bucket) else { return }
    let before = rows.count
    rows.set(tag, table, key)
    count += rows.count - before
  }

  /// The tag that the row must have; nil where there must be no row. The bucket is one that was verified.
  func tag(_ table: RecordTable, _ key: RowKey) -> RowTag? { rows(of: key.bucket)?[table][key] }

  /// The rows that begin with `prefix`, from after `last` on, ascending, at most `limit`.
  func rows(_ table: RecordTable, prefix: RowPrefix, after last: RowKey?, limit: Int) -> [SortedRows.Row] {
    rows(of: RowKey.bucket(of: prefix.high))?[table].rows(prefix: prefix, after: last, limit: limit) ?? []
  }

  private func rows(of bucket: Int) -> Rows? {
    if let lastUsed, lastUsed.bucket == bucket { return lastUsed }
    return buckets[bucket]
  }
}
