/// Row keys with their tags in ascending order: what ``VerifiedRows`` remembers of one table in one bucket.
///
/// Sorted runs of bounded length, so that a folder of a hundred thousand names costs 32 bytes for each and no operation
/// moves more than one run.
struct SortedRows: Sendable {
  struct Row: Equatable, Sendable {
    let key: RowKey
    var tag: RowTag
  }

  private static let runLimit = 256
  /// None is empty.
  private var runs: [[Row]] = []
  private(set) var count = 0

  subscript(key: RowKey) -> RowTag? {
    guard let run = run(of: key) else { return nil }
    let position = Self.position(of: key, in: runs[run])
    guard position < runs[run].count, runs[run][position].key == key else { return nil }
    return runs[run][position].tag
  }

  /// Adds a row whose key is higher than all others; `false`, and nothing is added, where it is not.
  mutating func append(_ key: RowKey, _ tag: RowTag) -> Bool {
    if let last = runs.last?.last, last.key >= key { return false }
    if runs.isEmpty || runs[runs.count - 1].count >= Self.runLimit { runs.append([]) }
    runs[runs.count - 1].append(Row(key: key, tag: tag))
    count += 1
    return true
  }

  mutating func set(_ tag: RowTag?, for key: RowKey) {
    guard let run = run(of: key) else {
      if let tag { _ = append(key, tag) }
      return
    }
    let position = Self.position(of: key, in: runs[run])
    let isThere = position < runs[run].count && runs[run][position].key == key
    switch (tag, isThere) {
    case (let tag?, true): runs[run][position].tag = tag
    case (let tag?, false):
      runs[run].insert(Row(key: key, tag: tag), at: position)
      count += 1
      split(run)
    case (nil, true):
      runs[run].remove(at: position)
      count -= 1
      if runs[run].isEmpty { runs.remove(at: run) }
    case (nil, false): break
    }
  }

  /// The rows whose keys begin with `prefix`, from after `last` on, at most `limit`.
  func rows(prefix: RowPrefix, after last: RowKey?, limit: Int) -> [Row] {
    var result: [Row] = []
    let lower = last ?? RowKey(high: prefix.high, low: 0)
    guard var run = run(of: lower) else { return result }
    var position = Self.position(of: lower, in: runs[run])
    while run < runs.count, result.count < limit {
      while position < runs[run].count, result.count < limit {
        let row = runs[run][position]
        if row.key.high != prefix.high { return result }
        if last.map({ $0 < row.key }) ?? true { result.append(row) }
        position += 1
      }
      run += 1
      position = 0
    }
    return result
  }

  private mutating func split(_ run: Int) {
    guard runs[run].count > Self.runLimit else { return }
    let half = runs[run].count / 2
    runs.insert(Array(runs[run][half...]), at: run + 1)
    runs[run].removeLast(runs[run].count - half)
  }

  /// The run that holds `key` or would: the last whose first key is not above it, else the first.
  private func run(of key: RowKey) -> Int? {
    guard !runs.isEmpty else { return nil }
    var low = 0
    var high = runs.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if runs[middle][0].key <= key { low = middle } else { high = middle }
    }
    return low
  }

  /// The first position whose key is not below `key`.
  private static func position(of key: RowKey, in run: [Row]) -> Int {
    var low = 0
    var high = run.count
    while low < high {
      let middle = (low + high) / 2
      if run[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// The GCM tag at the end of a stored value, which names one version of one row.
struct RowTag: Hashable, Sendable {
  let high: UInt64
  let low: UInt64

  /// Of a stored value, or of the tag itself. Nil where there are less than 16 bytes.
  init?(endOf value: UnsafeRawBufferPointer) {
    guard value.count >= 16 else { return nil }
    high = UInt64(bigEndian: value.loadUnaligned(fromByteOffset: value.count - 16, as: UInt64.self))
    low = UInt64(bigEndian: value.loadUnaligned(fromByteOffset: value.count - 8, as: UInt64.self))
  }
}
