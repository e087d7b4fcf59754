/// Rows as operations left them, before a commit has stored them.
struct ChangeBuffer: Sendable {
  enum Row: Sendable {
    case record(Record)
    case removed

    var record: Record? { if case .record(let record) = self { record } else { nil } }
    /// About how many bytes of memory it takes.
    var cost: Int { if case .record(let record) = self { record.cost } else { 64 } }
  }

  private(set) var rows: [RowID: Row] = [:]
  /// About how many bytes of memory they take.
  private(set) var byteCount = 0
  /// The keys in `rows` by their prefix, for kinds that are read in order.
  private var families: [RowFamily: Set<RowKey>] = [:]

  /// Rows of one kind whose keys begin alike.
  private struct RowFamily: Hashable, Sendable {
    let kind: RecordKind
    let prefix: UInt64
  }

  subscript(id: RowID) -> Row? { rows[id] }

  /// The keys that begin with `prefix`.
  func keys(_ kind: RecordKind, _ prefix: RowPrefix) -> Set<RowKey> {
    families[RowFamily(kind: kind, prefix: prefix.high)] ?? []
  }

  /// Sets a row, or with nil takes it out.
  mutating func put(_ row: Row?, at id: RowID) {
    let before = if let row { rows.updateValue(row, forKey: id) } else { rows.removeValue(forKey: id) }
    byteCount += (row?.cost ?? 0) - (before?.cost ?? 0)
    // An inode has one row, and its prefix no other.
    guard id.kind != .inode, (row == nil) != (before == nil) else { return }
    let family = RowFamily(kind: id.kind, prefix: id.key.high)
    if row == nil {
      families[family]?.remove(id.key)
      if families[family]?.isEmpty == true { families[family] = nil }
    } else {
      families[family, default: []].insert(id.key)
    }
  }

  /// In the order of the tables' trees.
  var sorted: [StoredRows.Change] {
    rows.map { StoredRows.Change(id: $0.key, record: $0.value.record) }.sorted { left, right in
      left.id.kind.table != right.id.kind.table
        ? left.id.kind.table.rawValue < right.id.kind.table.rawValue : left.id.key < right.id.key
    }
  }
}
