/// A row as a commit leaves it.
struct RowChange: Sendable {
  let id: RowID
  /// Whether the row was there before.
  let isStored: Bool
  /// As it is sealed; empty where the row goes.
  let value: [UInt8]

  var table: RecordTable { id.kind.table }
}
