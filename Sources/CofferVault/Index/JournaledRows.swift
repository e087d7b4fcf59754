/// What the journal's commits have written and SQLite does not have yet: it stands in the place of SQLite's rows.
struct JournaledRows: Sendable {
  // Whether a row is stored says here if SQLite has it.
  private var entries: [RowKey: RowChange] = [:]
  private var records: [RowKey: RowChange] = [:]
  private(set) var pages: [Int: [UInt8]] = [:]
  /// The newest; nil where there is nothing.
  private(set) var root: RootRecord?

  var isEmpty: Bool { root == nil }

  mutating func take(
    _ changes: some Sequence<RowChange>, pages: [(page: Int, value: [UInt8])], root: RootRecord
  ) {
    for change in changes {
      if change.table == .entry { Self.take(change, &entries) } else { Self.take(change, &records) }
    }
    for (page, value) in pages { self.pages[page] = value }
    self.root = root
  }

  /// - Parameter root: as the entry's commit left it.
  mutating func take(_ entry: JournalEntry, root: RootRecord) {
    take(entry.changes, pages: entry.pages, root: root)
  }

  private static func take(_ change: RowChange, _ rows: inout [RowKey: RowChange]) {
    let isStored = rows[change.id.key]?.isStored ?? change.isStored
    rows[change.id.key] =
      isStored || !change.value.isEmpty
      ? RowChange(id: change.id, isStored: isStored, value: change.value) : nil
  }

  /// A row; nil where SQLite's is the newest.
  func row(_ table: RecordTable, _ key: RowKey) -> RowChange? { table == .entry ? entries[key] : records[key] }

  /// Rows of a table, ascending, of those whose keys `isMeant`.
  func rows(_ table: RecordTable, where isMeant: (RowKey) -> Bool) -> [RowChange] {
    let rows = table == .entry ? entries : records
    return rows.values.filter { isMeant($0.id.key) }.sorted { $0.id.key < $1.id.key }
  }

  /// All rows, in the order of the tables' trees.
  var sorted: [RowChange] { RecordTable.allCases.flatMap { rows($0) { _ in true } } }

  var sortedPages: [(page: Int, value: [UInt8])] { pages.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
}
