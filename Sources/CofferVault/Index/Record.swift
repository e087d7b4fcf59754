internal import CofferSystem

/// Names a row: its kind and its key.
struct RowID: Hashable, Sendable {
  let kind: RecordKind
  let key: RowKey
}

/// What a row holds, opened. Inodes are kept as values, because most operations change a few of their fields.
enum Record: Sendable {
  case bytes([UInt8])
  indirect case inode(Inode)

  var encoded: [UInt8] {
    switch self {
    case .bytes(let bytes): bytes
    case .inode(let inode): inode.encoded()
    }
  }

  /// About how many bytes of memory it takes.
  var cost: Int {
    switch self {
    case .bytes(let bytes): 96 + bytes.count
    case .inode(let inode): if case .inline(let sealed) = inode.content { 448 + sealed.count } else { 448 }
    }
  }
}

/// Opened records that equal what is stored, most recently used ones at least.
///
/// Two generations: when the young one is full it becomes the old one, and what was not used since is dropped.
struct RecordCache {
  /// Bytes in a generation.
  private static let limit = 1 << 20
  private var young: [RowID: Record] = [:]
  private var old: [RowID: Record] = [:]
  private var cost = 0

  mutating func find(_ id: RowID) -> Record? {
    if let record = young[id] { return record }
    guard let record = old.removeValue(forKey: id) else { return nil }
    insert(record, id)
    return record
  }

  mutating func insert(_ record: Record, _ id: RowID) {
    if cost >= Self.limit {
      old = young
      young = [:]
      cost = 0
    }
    old[id] = nil
    if let before = young.updateValue(record, forKey: id) { cost -= before.cost }
    cost += record.cost
  }

  mutating func remove(_ id: RowID) {
    if let before = young.removeValue(forKey: id) { cost -= before.cost }
    old[id] = nil
  }
}
