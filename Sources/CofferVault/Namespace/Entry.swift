internal import CofferFiles
internal import CofferSystem

/// One name in a folder. Names that share a row key (their keyed hashes collide) share its record.
struct Entry: Equatable, Sendable {
  let name: [UInt8]
  let inode: InodeNumber
  let kind: NodeKind
  /// Tells apart in cookies the names that share a record. It stays while the name does, whatever it stands for, so
  /// that a reader who goes on behind it neither misses nor repeats another.
  var place: UInt8 = 0

  init(name: [UInt8], inode: InodeNumber, kind: NodeKind) {
    self.name = name
    self.inode = inode
    self.kind = kind
  }

  static func encode(_ entries: [Entry], parent: InodeNumber) -> [UInt8] {
    var writer = ByteWriter(capacity: entries.reduce(10) { $0 + $1.name.count + 14 })
    writer.write(parent.value)
    writer.write(UInt16(entries.count))
    for entry in entries {
      writer.write(counted: entry.name)
      writer.write(entry.inode.value)
      writer.write(entry.kind.rawValue)
      writer.write(entry.place)
    }
    return Padding.pad(writer.bytes)
  }

  /// The entries of a record, in the order of their places.
  static func decode(_ bytes: [UInt8], parent: InodeNumber) throws -> [Entry] {
    var reader = ByteReader(try Padding.unpad(bytes))
    guard try reader.read(UInt64.self) == parent.value else { throw MalformedBytes() }
    let count = try reader.read(UInt16.self)
    var entries: [Entry] = []
    for _ in 0..<count {
      let name = try reader.read(countedUpTo: VaultPath.nameLimit)
      let inode = InodeNumber(value: try reader.read())
      guard let kind = NodeKind(rawValue: try reader.read()) else { throw MalformedBytes() }
      var entry = Entry(name: name, inode: inode, kind: kind)
      entry.place = try reader.read()
      guard entries.last.map({ $0.place < entry.place }) ?? true else { throw MalformedBytes() }
      entries.append(entry)
    }
    try reader.finish()
    guard !entries.isEmpty else { throw MalformedBytes() }
    return entries
  }
}
