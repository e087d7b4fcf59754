/// What a transaction under way changes: who reads in the midst of it must not look there, for nobody knows how far it is.
struct RowsUnderWay: Sendable {
  // Ascending.
  private let entries: [RowKey]
  private let records: [RowKey]
  private let pages: Set<Int>

  init(_ commit: SealedCommit) {
    self.init(rows: commit.changes.map(\.row.id), pages: commit.sealedPages.map(\.page))
  }

  /// - Parameter pages: of buckets.
  init(rows: [RowID], pages: [Int]) {
    let keys = { table in rows.lazy.filter { $0.kind.table == table }.map(\.key).sorted() }
    (entries, records) = (keys(.entry), keys(.record))
    self.pages = Set(pages)
  }

  /// Whether what `read` asks for is among it.
  func touches(_ read: StoredRead) -> Bool {
    switch read {
    case .page(let page): pages.contains(page)
    case .bucket(let index):
      RecordTable.allCases.contains { table in
        let first = RowKey(high: UInt64(index) << (64 - VaultFormat.bucketBits), low: 0)
        return next(table, from: first).map { $0.bucket == index } ?? false
      }
    case .value(let id): next(id.kind.table, from: id.key) == id.key
    case .values(let kind, let first, let last, _):
      // A key that is none of theirs may be `first` itself.
      next(kind.table, from: first ?? RowKey(high: last.high, low: 0)).map { $0 <= last } ?? false
    }
  }

  /// The first key of a table at or behind `key`.
  private func next(_ table: RecordTable, from key: RowKey) -> RowKey? {
    let keys = table == .entry ? entries : records
    var (low, high) = (0, keys.count)
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low < keys.count ? keys[low] : nil
  }
}
