internal import CofferFiles
internal import CofferSystem

/// The kinds of sealed rows. The raw value is part of what a row is bound to.
enum RecordKind: UInt8, CaseIterable {
  case entry = 1
  case inode = 2
  case map = 3
  case setting = 4
  case pending = 5
  case bucket = 6
  case root = 7
  /// One extended attribute.
  case attribute = 8
  /// Which groups of a file's map pages have rows; see ``MapDirectory``.
  case mapDirectory = 9

  /// Entries are small and read in runs, so they have a clustered table; the others are large and looked up one by one.
  var table: RecordTable { self == .entry ? .entry : .record }
}

/// The tables whose rows the buckets count. The raw value is part of what a bucket's hash covers.
enum RecordTable: UInt8, CaseIterable {
  case entry = 1
  case record = 2
}

/// Hides a record's exact length: its bytes behind their count, zeros up to a multiple of `step`.
enum Padding {
  static func pad(_ bytes: [UInt8]) -> [UInt8] {
    let step = bytes.count < 512 ? 64 : 512
    let total = (bytes.count + 4 + step - 1) / step * step
    return UInt32(bytes.count).bigEndianBytes + bytes + [UInt8](repeating: 0, count: total - bytes.count - 4)
  }

  static func unpad(_ bytes: [UInt8]) throws(MalformedBytes) -> [UInt8] {
    var reader = ByteReader(bytes)
    return try reader.read(countedUpTo: bytes.count)
  }
}

/// The number of a file or folder, never used twice in a vault.
struct InodeNumber: Hashable, Sendable {
  let value: UInt64
  static let rootFolder = InodeNumber(value: 1)
}

/// One name in a folder. Names that share a row key (their keyed hashes collide) share its record.
struct Entry: Equatable, Sendable {
  var name: [UInt8]
  var inode: InodeNumber
  var kind: NodeKind

  static func encode(_ entries: [Entry], parent: InodeNumber) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(parent.value)
    writer.write(UInt16(entries.count))
    for entry in entries {
      writer.write(counted: entry.name)
      writer.write(entry.inode.value)
      writer.write(entry.kind.rawValue)
    }
    return Padding.pad(writer.bytes)
  }

  static func decode(_ bytes: [UInt8], parent: InodeNumber) throws -> [Entry] {
    var reader = ByteReader(try Padding.unpad(bytes))
    guard try reader.read(UInt64.self) == parent.value else { throw MalformedBytes() }
    let count = try reader.read(UInt16.self)
    var entries: [Entry] = []
    for _ in 0..<count {
      let name = try reader.read(countedUpTo: VaultPath.nameLimit)
      let inode = InodeNumber(value: try reader.read())
      guard let kind = NodeKind(rawValue: try reader.read()) else { throw MalformedBytes() }
      entries.append(Entry(name: name, inode: inode, kind: kind))
    }
    try reader.finish()
    return entries
  }
}
