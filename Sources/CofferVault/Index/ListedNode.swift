internal import CofferFiles

/// What is known of an inode without its record: enough to show it, and to remove it.
struct ListedNode: Sendable {
  /// As the record has them.
  var attributes: FileAttributes
  /// Extended attributes, each in a record of its own.
  let attributeCount: UInt32
  /// That of a file whose content is not in its record.
  let object: ObjectReference?

  init(_ inode: Inode) {
    attributes = FileAttributes(inode)
    attributeCount = inode.attributeCount
    if case .object(let reference, _) = inode.content { object = reference } else { object = nil }
  }

  var number: InodeNumber { attributes.number }

  /// Pages that the map of a file's blocks has.
  var pageCount: UInt64 {
    object.map { MapPage.pageCount(blockCount: $0.blockCount(of: attributes.byteCount)) } ?? 0
  }
}
