internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem

/// The key of a sealed row: 16 bytes from a keyed hash, so that it tells nothing but which rows are neighbours.
///
/// Keys of rows that are used together begin alike, because random keys cost several times the writes in a large tree:
/// a folder's entries share their first half, inodes with neighbouring numbers and neighbouring map pages of a file all
/// but the last byte. (That inodes were made one after the other shows in SQLite's row ids too.)
struct RowKey: Hashable, Comparable, Sendable {
  static let byteCount = 16
  let high: UInt64
  let low: UInt64

  init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Nil unless there are 16 bytes.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Self.byteCount else { return nil }
    high = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
    low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
  }

  var bytes: [UInt8] { withBytes { Array($0) } }

  /// The key is a hash already, and neighbours differ in half of it: one word tells them apart for a table in memory.
  var word: UInt64 { high ^ low }

  func hash(into hasher: inout Hasher) { hasher.combine(word) }

  /// The bucket that counts the row: the key's first fourteen bits.
  var bucket: Int { Self.bucket(of: high) }

  static func bucket(of high: UInt64) -> Int { Int(high >> (64 - VaultFormat.bucketBits)) }

  static func < (left: RowKey, right: RowKey) -> Bool {
    left.high != right.high ? left.high < right.high : left.low < right.low
  }

  /// Calls `body` with the key's 16 bytes, without an array.
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try withUnsafeBytes(of: (high.bigEndian, low.bigEndian), body)
  }
}

/// The first half of the keys of rows that are read in one run.
struct RowPrefix: Hashable, Sendable {
  let high: UInt64
}

/// Makes row keys and objects' names, and keeps those that were made lately: a keyed hash costs more than a look-up, and
/// each operation asks for the same few keys several times.
struct RowKeys: Sendable {
  private let keyedHash: KeyedHash
  private var folders = GenerationCache<InodeNumber, RowPrefix>(limit: 512)
  private var names = GenerationCache<NameInFolder, RowKey>(limit: 2048)
  private var inodeGroups = GenerationCache<UInt64, RowKey>(limit: 512)
  private var mapGroups = GenerationCache<MapGroup, RowKey>(limit: 512)

  private struct NameInFolder: Hashable {
    let folder: InodeNumber
    let name: [UInt8]
  }

  private struct MapGroup: Hashable {
    let inode: InodeNumber
    let group: UInt64
  }

  /// The bits of a name's hash that go into a row key. The last eight tell apart in cookies the names that share a row,
  /// and the first two keep cookies positive and far from zero. Tests leave fewer, so that names do share rows.
  var nameMask: UInt64 = 0x3fff_ffff_ffff_ff00 {
    didSet { names = GenerationCache(limit: 2048) }
  }

  init(metadataKey: SecretKey) {
    keyedHash = KeyedHash(key: metadataKey.derived("row keys"))
    pendingPrefix = RowPrefix(high: Self.hash("pending", under: keyedHash).high)
  }

  mutating func entry(parent: InodeNumber, name: [UInt8]) -> RowKey {
    let id = NameInFolder(folder: parent, name: name)
    if let known = names.find(id) { return known }
    let key = RowKey(high: entryPrefix(parent: parent).high, low: nameHash("name", parent, name))
    names.insert(key, id)
    return key
  }

  /// Keeps the key of a name that was read, for who asks for that name next.
  mutating func keep(_ key: RowKey, parent: InodeNumber, name: [UInt8]) {
    names.insert(key, NameInFolder(folder: parent, name: name))
  }

  /// What all entries of a folder begin with.
  mutating func entryPrefix(parent: InodeNumber) -> RowPrefix {
    if let known = folders.find(parent) { return known }
    let prefix = RowPrefix(high: hash("folder", parent.value).high)
    folders.insert(prefix, parent)
    return prefix
  }

  mutating func inode(_ number: InodeNumber) -> RowKey {
    let group = number.value / 64
    if let known = inodeGroups.find(group) { return Self.place(number.value, in: known) }
    let made = hash("inode", group)
    inodeGroups.insert(made, group)
    return Self.place(number.value, in: made)
  }

  mutating func mapPage(_ inode: InodeNumber, _ page: UInt64) -> RowKey {
    let id = MapGroup(inode: inode, group: page / 64)
    if let known = mapGroups.find(id) { return Self.place(page, in: known) }
    let made = hash("map", inode.value, id.group)
    mapGroups.insert(made, id)
    return Self.place(page, in: made)
  }

  func mapDirectory(_ inode: InodeNumber, _ index: UInt64) -> RowKey {
    hash("map directory", inode.value, index)
  }

  func setting(_ name: String) -> RowKey {
    RowKey(high: settingPrefix.high, low: hash("setting", name: Array(name.utf8)).high)
  }

  func attribute(_ inode: InodeNumber, name: [UInt8]) -> RowKey {
    RowKey(high: attributePrefix(inode).high, low: nameHash("attribute", inode, name))
  }

  /// What all extended attributes of a file begin with.
  func attributePrefix(_ inode: InodeNumber) -> RowPrefix {
    RowPrefix(high: hash("attributes", inode.value).high)
  }

  var settingPrefix: RowPrefix { RowPrefix(high: hash("settings").high) }

  /// What all marks of removals begin with. Each file that goes has one.
  let pendingPrefix: RowPrefix

  func pending(_ inode: InodeNumber) -> RowKey { RowKey(high: pendingPrefix.high, low: inode.value) }

  func deposit(_ inode: InodeNumber) -> RowKey { RowKey(high: depositPrefix.high, low: inode.value) }

  var depositPrefix: RowPrefix { RowPrefix(high: hash("deposit").high) }

  /// Where an object lies below the objects' folder: a folder of two digits, and a name of thirty.
  func objectPlace(_ number: UInt64) -> (folder: String, name: String) {
    let digits = hash("object", number).bytes.hexadecimal
    return (String(digits.prefix(2)), String(digits.dropFirst(2)))
  }

  /// Rows with 64 consecutive numbers are neighbours: 15 bytes of the group's hash, and the place in it.
  private static func place(_ number: UInt64, in group: RowKey) -> RowKey {
    RowKey(high: group.high, low: group.low & ~0xff | number % 64)
  }

  private func nameHash(_ kind: String, _ inode: InodeNumber, _ name: [UInt8]) -> UInt64 {
    hash(kind, inode.value, name: name).high & nameMask | 1 << 62
  }

  private func hash(_ kind: String, _ number: UInt64? = nil, _ second: UInt64? = nil, name: [UInt8] = []) -> RowKey {
    Self.hash(kind, number, second, name: name, under: keyedHash)
  }

  /// The first 16 bytes of the keyed hash of: the kind's length in a byte, the kind, each number in eight bytes, the name.
  private static func hash(
    _ kind: String, _ number: UInt64? = nil, _ second: UInt64? = nil, name: [UInt8] = [],
    under keyedHash: KeyedHash
  ) -> RowKey {
    let count = 1 + kind.utf8.count + (number == nil ? 0 : 8) + (second == nil ? 0 : 8) + name.count
    return withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { bytes in
      bytes[0] = UInt8(kind.utf8.count)
      var end = 1
      for byte in kind.utf8 {
        bytes[end] = byte
        end += 1
      }
      func append(_ number: UInt64?) {
        guard let number else { return }
        bytes.storeBytes(of: number.bigEndian, toByteOffset: end, as: UInt64.self)
        end += 8
      }
      append(number)
      append(second)
      UnsafeMutableRawBufferPointer(rebasing: bytes[end...]).copyBytes(from: name)
      return keyedHash.withCode(for: UnsafeRawBufferPointer(bytes)) { code in
        RowKey(
          high: UInt64(bigEndian: code.loadUnaligned(as: UInt64.self)),
          low: UInt64(bigEndian: code.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
      }
    }
  }
}
