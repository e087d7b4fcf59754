internal import CofferFiles
internal import CofferSystem

/// Where a search for a file's map pages is.
struct MapPosition {
  fileprivate var group: UInt64 = 0
  fileprivate var directory: (index: UInt64, content: MapDirectory)?
}

/// A group of map pages that may have rows.
struct MapGroup {
  let pages: Range<UInt64>
  /// Directories that were met on the way here.
  let recordCount: UInt64
}

/// What leads to which rows.
extension IndexSession {
  /// The next group of a file's map pages that may have rows, from `position` on, and nil at the end.
  func nextMapGroup(
    of inode: InodeNumber, _ pageCount: UInt64, from position: MapPosition
  ) throws -> (group: MapGroup, next: MapPosition)? {
    var next = position
    let perDirectory = MapDirectory.groupsPerDirectory
    let end = (pageCount + MapDirectory.pagesPerGroup - 1) / MapDirectory.pagesPerGroup
    var recordCount: UInt64 = 0
    // Of whatever is no longer than a group nothing leads to a directory.
    if end <= 1, position.group < end {
      next.group = end
      return (MapGroup(pages: 0..<pageCount, recordCount: 0), next)
    }
    while next.group < end {
      let index = next.group / perDirectory
      if next.directory?.index != index {
        var directory = try mapDirectory(inode, index)
        if !directory.isEmpty { recordCount += 1 }
        // Group 0 is always looked at.
        if index == 0 { directory[0] = true }
        next.directory = (index, directory)
      }
      guard let found = next.directory?.content.next(from: Int(next.group - index * perDirectory)) else {
        next.group = (index + 1) * perDirectory
        continue
      }
      let group = index * perDirectory + UInt64(found)
      guard group < end else { break }
      next.group = group + 1
      let first = group * MapDirectory.pagesPerGroup
      let pages = first..<min(first + MapDirectory.pagesPerGroup, pageCount)
      return (MapGroup(pages: pages, recordCount: recordCount), next)
    }
    // The last directories may have led to nothing.
    return recordCount > 0 ? (MapGroup(pages: 0..<0, recordCount: recordCount), next) : nil
  }

  /// Extended attributes' rows of an inode.
  func attributeRecordCount(of inode: Inode) throws -> UInt64 {
    guard inode.attributeCount > 0 else { return 0 }
    var rowCount: UInt64 = 0
    var attributeCount: UInt32 = 0
    try eachAttributeRow(of: inode.number) { _, bytes in
      rowCount += 1
      attributeCount += UInt32(try ExtendedAttribute.decode(bytes, of: inode.number).count)
    }
    guard attributeCount == inode.attributeCount else {
      throw VaultError.damaged(what: "the number of a file's extended attributes")
    }
    return rowCount
  }
}
