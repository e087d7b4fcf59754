internal import CofferCrypto
internal import CofferSystem

/// The key of a sealed row: 16 bytes from a keyed hash, so that it tells nothing but which rows are neighbours.
///
/// Keys of rows that are used together begin alike, because random keys cost several times the writes in a large tree:
/// a folder's entries share their first half, a file's neighbouring map pages all but the last byte.
struct RowKey: Hashable, Comparable, Sendable {
  static let byteCount = 16
  let bytes: [UInt8]

  init?(bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  fileprivate init(joining bytes: [UInt8]) { self.bytes = bytes }

  /// The bucket that counts the row: the key's first twelve bits.
  var bucket: Int { Int(bytes[0]) << 4 | Int(bytes[1] >> 4) }

  static func < (left: RowKey, right: RowKey) -> Bool { left.bytes.lexicographicallyPrecedes(right.bytes) }
}

/// Makes row keys and objects' names.
struct RowKeys: Sendable {
  private let key: SecretKey

  init(metadataKey: SecretKey) { key = metadataKey.derived("row keys") }

  func entry(parent: InodeNumber, name: [UInt8]) -> RowKey {
    let suffix = hash("name", parent.value.bigEndianBytes + name)
    return RowKey(joining: entryPrefix(parent: parent) + suffix.prefix(8))
  }

  /// What all entries of a folder begin with: 8 bytes.
  func entryPrefix(parent: InodeNumber) -> [UInt8] { Array(hash("folder", parent.value.bigEndianBytes).prefix(8)) }

  func inode(_ number: InodeNumber) -> RowKey {
    RowKey(joining: Array(hash("inode", number.value.bigEndianBytes).prefix(16)))
  }

  func mapPage(_ inode: InodeNumber, _ page: UInt64) -> RowKey {
    let group = hash("map", inode.value.bigEndianBytes + (page / 64).bigEndianBytes)
    return RowKey(joining: group.prefix(15) + [UInt8(page % 64)])
  }

  func setting(_ name: String) -> RowKey {
    RowKey(joining: settingPrefix + hash("setting", Array(name.utf8)).prefix(8))
  }

  var settingPrefix: [UInt8] { Array(hash("settings", []).prefix(8)) }

  func pending(_ inode: InodeNumber) -> RowKey { RowKey(joining: pendingPrefix + inode.value.bigEndianBytes) }

  var pendingPrefix: [UInt8] { Array(hash("pending", []).prefix(8)) }

  /// Where an object lies below the objects' folder: a folder of two digits, and a name of thirty.
  func objectPlace(_ number: UInt64) -> (folder: String, name: String) {
    let digits = hash("object", number.bigEndianBytes).prefix(16).hexadecimal
    return (String(digits.prefix(2)), String(digits.dropFirst(2)))
  }

  private func hash(_ kind: String, _ bytes: [UInt8]) -> [UInt8] {
    MessageAuthentication.code(for: [UInt8(kind.utf8.count)] + Array(kind.utf8) + bytes, key: key)
  }
}
