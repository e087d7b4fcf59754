internal import CofferSystem

/// Names a row: its kind and its key.
struct RowID: Hashable, Sendable {
  let kind: RecordKind
  let key: RowKey

  func hash(into hasher: inout Hasher) { hasher.combine(key.word ^ UInt64(kind.rawValue)) }
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
