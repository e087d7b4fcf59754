internal import CofferSystem

/// What a commit writes, as the journal holds it: every value sealed as in its row, and of the root what it changes.
struct JournalEntry: Sendable {
  /// Rows that a commit in the journal changes at most. Larger ones write whole pages either way.
  static let changeLimit = 64

  let changes: [RowChange]
  let pages: [(page: Int, value: [UInt8])]
  let root: RootChange

  /// Bytes of ``encoded()``.
  var byteCount: Int {
    changes.reduce(0) { $0 + $1.value.count + 2 + RowKey.byteCount + 4 }
      + pages.reduce(0) { $0 + $1.value.count + 2 + 4 }
      + RootChange.byteCount(bucketCount: root.buckets.count) + 2
  }

  func encoded() -> [UInt8] {
    var writer = ByteWriter(capacity: byteCount)
    writer.write(UInt8(changes.count))
    for change in changes {
      writer.write(change.id.kind.rawValue)
      writer.write(UInt8(change.isStored ? 1 : 0))
      writer.write(change.id.key.high)
      writer.write(change.id.key.low)
      writer.write(counted: change.value)
    }
    writer.write(UInt8(pages.count))
    for (page, value) in pages {
      writer.write(UInt16(page))
      writer.write(counted: value)
    }
    root.encode(to: &writer)
    return writer.bytes
  }
}

// Beside the memberwise initializer.
extension JournalEntry {
  /// Nil where there are more changes than an entry has; and where the commit brings a salt, as the first of each opening does:
  /// SQLite has the salts.
  init?(_ commit: SealedCommit) {
    guard commit.changes.count <= Self.changeLimit, commit.newSalt == nil else { return nil }
    changes = commit.changes.map(\.row)
    pages = commit.sealedPages
    root = commit.rootChange
  }

  init(decoding bytes: [UInt8]) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    let changeCount = try reader.read(UInt8.self)
    guard changeCount <= Self.changeLimit else { throw MalformedBytes() }
    var changes: [RowChange] = []
    for _ in 0..<changeCount {
      guard let kind = RecordKind(rawValue: try reader.read()), kind != .bucket, kind != .root else {
        throw MalformedBytes()
      }
      let isStored = try reader.read(UInt8.self)
      guard isStored <= 1 else { throw MalformedBytes() }
      let key = RowKey(high: try reader.read(), low: try reader.read())
      let value = try reader.read(countedUpTo: CommitJournal.byteCount)
      changes.append(RowChange(id: RowID(kind: kind, key: key), isStored: isStored == 1, value: value))
    }
    self.changes = changes
    var pages: [(page: Int, value: [UInt8])] = []
    for _ in 0..<(try reader.read(UInt8.self)) {
      let page = Int(try reader.read(UInt16.self))
      guard page < RootRecord.pageCount else { throw MalformedBytes() }
      pages.append((page, try reader.read(countedUpTo: CommitJournal.byteCount)))
    }
    self.pages = pages
    root = try RootChange(from: &reader)
    try reader.finish()
  }
}
