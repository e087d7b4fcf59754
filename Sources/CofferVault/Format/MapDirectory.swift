internal import CofferFiles
internal import CofferSystem

/// Says where a file's block map has rows, so that a search in a file of many terabytes asks only there.
///
/// Map pages lie in groups of 64 with neighbouring row keys. Directory d is a bitmap of the 4,096 groups from 4096 d on:
/// where a bit is clear, or the directory has no row, no page of that group has one. A set bit says nothing but *look*.
/// Group 0 is always looked at, so that a file of up to 4,096 blocks needs no directory, and has none: a bit goes with the
/// group's last row, and the directory's row with its last bit.
///
/// A page without a row is a hole of 64 blocks, whatever the directory says. That somebody took the row away is not this
/// record's to notice: the sum and count of the row's bucket do not fit then, and nothing in the bucket is read.
struct MapDirectory: Equatable, Sendable {
  static let pagesPerGroup: UInt64 = 64
  static let groupsPerDirectory: UInt64 = 4096
  private static let wordCount = 64

  /// The groups' bits, 64 in each word.
  private var words = [UInt64](repeating: 0, count: wordCount)

  init() {}

  var isEmpty: Bool { words.allSatisfy { $0 == 0 } }

  /// The bit of a group, counted from the directory's first.
  subscript(group: Int) -> Bool {
    get { words[group >> 6] >> UInt64(group & 63) & 1 == 1 }
    set {
      let bit = 1 << UInt64(group & 63) as UInt64
      if newValue { words[group >> 6] |= bit } else { words[group >> 6] &= ~bit }
    }
  }

  /// The first set bit at or behind `group`.
  func next(from group: Int) -> Int? {
    var word = group >> 6
    guard word < Self.wordCount else { return nil }
    var bits = words[word] & (~0 << UInt64(group & 63))
    while bits == 0 {
      word += 1
      guard word < Self.wordCount else { return nil }
      bits = words[word]
    }
    return word << 6 + bits.trailingZeroBitCount
  }

  /// The last set bit at or before `group`.
  func last(through group: Int) -> Int? {
    guard group >= 0 else { return nil }
    var word = min(group >> 6, Self.wordCount - 1)
    let shift = UInt64(63 - (group & 63))
    var bits = group >> 6 < Self.wordCount ? words[word] & (~0 >> shift) : words[word]
    while bits == 0 {
      guard word > 0 else { return nil }
      word -= 1
      bits = words[word]
    }
    return word << 6 + 63 - bits.leadingZeroBitCount
  }

  mutating func formUnion(_ other: MapDirectory) { for index in words.indices { words[index] |= other.words[index] } }

  // MARK: Stored form

  /// Words up to the last that has a bit.
  func encoded(inode: InodeNumber, index: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(inode.value)
    writer.write(index)
    let count = (words.lastIndex { $0 != 0 } ?? -1) + 1
    writer.write(UInt16(count))
    for word in words[..<count] { writer.write(word) }
    return writer.bytes
  }

  init(decoding bytes: [UInt8], inode: InodeNumber, index: UInt64) throws {
    var reader = ByteReader(bytes)
    guard try reader.read(UInt64.self) == inode.value, try reader.read(UInt64.self) == index else {
      throw MalformedBytes()
    }
    let count = Int(try reader.read(UInt16.self))
    guard count <= Self.wordCount else { throw MalformedBytes() }
    for position in 0..<count { words[position] = try reader.read() }
    try reader.finish()
  }
}
