internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// A file or object to be taken apart once nothing needs it: marked in the commit that unlinks it, removed after its
/// object is gone, so that neither a crash nor an opening needs a scan.
struct PendingRemoval: Sendable {
  /// Nil: an object that no record names, or names no more; its file stays.
  let inode: InodeNumber?
  let object: ObjectReference?

  init(object: ObjectReference) {
    inode = nil
    self.object = object
  }

  init(inode: InodeNumber, object: ObjectReference?) {
    self.inode = inode
    self.object = object
  }

  /// The number that the mark's row goes by: an inode's, or an object's with the highest bit.
  var mark: InodeNumber { inode ?? InodeNumber(value: 1 << 63 | (object?.number ?? 0)) }

  func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.write(inode?.value ?? 0)
    writer.write(UInt8(object == nil ? 0 : 1))
    writer.write(object?.number ?? 0)
    writer.write(object?.blockSizeExponent ?? 0)
    return Padding.pad(writer.bytes)
  }

  init(decoding bytes: [UInt8]) throws {
    var reader = ByteReader(try Padding.unpad(bytes))
    let number = try reader.read(UInt64.self)
    inode = number == 0 ? nil : InodeNumber(value: number)
    let hasObject = try reader.read(UInt8.self) == 1
    let reference = ObjectReference(number: try reader.read(), blockSizeExponent: try reader.read())
    object = hasObject ? reference : nil
    try reader.finish()
    guard inode != nil || object != nil else { throw MalformedBytes() }
  }
}

extension Vault {
  /// Takes apart an inode whose last name is gone; called within the operation that removed the name.
  ///
  /// What somebody uses or holds stays until the last of them is done, and what has many rows goes in portions.
  func discard(_ node: ListedNode, at time: Timestamp, in session: IndexSession) throws {
    let number = node.number
    if node.isRemovedAtOnce, !files.isNeeded(number) {
      try session.removeAtOnce(node)
      session.afterOperation { self.files.didRemove(number) }
    } else {
      try session.addOrphan(node, at: time)
      session.afterOperation { self.files.didOrphan(number) }
    }
  }

  /// Removes what waits for its removal, in operations of bounded size. What finds no room is tried again with the next commit; where one
  /// fails otherwise, the next opening goes on, for a commit marks what it has left. The caller holds no file's lock.
  func removeUnlinked() {
    // Whoever has the vault once it is closed removes by the marks.
    while !files.isClosed, let removals = files.beginRemovals() {
      finish(removals.unjoined.flatMap { $0.emptyUnjoinedObjects() }.map { PendingRemoval(object: $0) })
      let left = remove(removals.numbers)
      files.end(removals, postponed: left)
      if !left.isEmpty { return commitSoon() }
    }
  }

  /// Returns those that find no room.
  private func remove(_ numbers: [InodeNumber]) -> [InodeNumber] {
    var left = (try? removeAtOnce(numbers)) ?? numbers
    while let number = left.last {
      do { try remove(number) } catch {
        if VaultError.wrapping(error).isOfRoom { return left }
      }
      left.removeLast()
    }
    return []
  }

  /// Removes all of these that can be removed at once, in one operation; returns the others.
  private func removeAtOnce(_ numbers: [InodeNumber]) throws -> [InodeNumber] {
    if numbers.isEmpty { return [] }
    return try perform { session in
      try session.gather(numbers) { number -> InodeNumber? in
        guard session.orphans.contains(number), let node = try session.nodeIfPresent(number), node.isRemovedAtOnce,
          node.attributeCount <= Self.attributesOfMany
        else { return number }
        try session.removeAtOnce(node)
        return nil
      }.compactMap(\.self)
    }
  }

  /// Each may be read for its removal, and has 64 KiB at most.
  private static let attributesOfMany = 4

  /// Removes what was held, and was let go of. The caller holds no file's lock.
  func removeLetGo() {
    files.leaveLetGo()
    removeUnlinked()
  }

  /// Where room is short: has everything removed that nobody needs any more, also what is about to be let go of, for which this waits
  /// until all holders have heard of it (``hold(_:hearing:)``). The caller holds no file's lock.
  ///
  /// - Parameter end: where something keeps them from that.
  public func settleRemovals(until end: SuspendingClock.Instant) {
    files.waitUntilSettled(until: end) { removeLetGo() }
  }

  /// Something has no name any more, and may go: see ``settleRemovals(until:)``.
  public var hasUnsettledRemovals: Bool { files.isSettling }

  /// Rises when something was removed that nobody needed any more.
  public var removalCount: Int { files.removalCount.load(ordering: .acquiring) }

  /// Removes the rows of an orphan, or of what a crash has left marked; there may be nothing left.
  func remove(_ number: InodeNumber) throws {
    var position: UInt64? = 0
    while let start = position {
      position = try perform { session in
        let marked = try session.pendingRemoval(number)
        let node = try session.nodeIfPresent(number)
        guard marked != nil || session.orphans.contains(number) else { return nil }
        if let next = try session.removePages(of: number, node, from: start) { return next }
        // A handle may have given the file its object after the mark was set: the record's word comes first.
        if let node { try session.removeInode(node) } else if let marked { try session.removeObject(marked) }
        return nil
      }
    }
  }

  /// What a crash left: marked removals, and objects that no commit knows.
  func recover() throws {
    let (pending, firstUnknown) = try index.read { (try $0.pendingRemovals(), $0.committedNextObject) }
    // One that the disk does not let go keeps nobody from the vault: whoever needs its name replaces it.
    _ = objects.remove(Array(firstUnknown..<(firstUnknown + VaultFormat.uncommittedObjects)))
    if pending.isEmpty { return }
    for removal in pending {
      if let inode = removal.inode {
        try remove(inode)
      } else {
        try perform { $0.removeObjectAfterCommit(removal) }
      }
    }
    try commit()
  }
}

extension PendingRemoval {
  init(_ node: ListedNode) { self.init(inode: node.number, object: node.object) }
}

extension ListedNode {
  /// It has few rows.
  fileprivate var isRemovedAtOnce: Bool { pageCount <= 16 }
}

extension FileNode {
  /// Objects of a file that is gone which no join told of: no commit refers to them, so that they need not wait for one. Empties the one
  /// that it had last, whose room would stay taken for as long as some thread that has just closed the file has its descriptor.
  fileprivate func emptyUnjoinedObjects() -> [ObjectReference] {
    writing.withLock { _ in
      if objectIsMarked { try? object?.file.truncate(to: 0) }
      return (objectIsMarked ? [object?.reference].compactMap(\.self) : [])
        + retired.filter(\.isMarked).map(\.reference)
    }
  }
}

extension IndexSession {
  func addPending(_ removal: PendingRemoval) throws {
    try set(.pending, rowKeys.pending(removal.mark), removal.encoded())
  }

  func removePending(_ mark: InodeNumber) throws { try remove(.pending, rowKeys.pending(mark)) }

  func pendingRemoval(_ mark: InodeNumber) throws -> PendingRemoval? {
    try value(.pending, rowKeys.pending(mark)).map { try PendingRemoval(decoding: $0) }
  }

  func pendingRemovals() throws -> [PendingRemoval] {
    var result: [PendingRemoval] = []
    var last: RowKey?
    repeat {
      let found = try rows(.pending, prefix: rowKeys.pendingPrefix, after: last, limit: 4096)
      result += try found.map { try PendingRemoval(decoding: $0.1) }
      last = found.last?.0
    } while last != nil
    return result
  }

  /// Removes an inode with all of its rows, which are few.
  fileprivate func removeAtOnce(_ node: ListedNode) throws {
    _ = try removePages(of: node.number, node, from: 0)
    try removeInode(node)
  }

  /// Removes an inode's record. Its object goes after the commit, and then the mark.
  func removeInode(_ node: ListedNode) throws {
    afterOperation { self.orphans.remove(node.number) }
    if node.attributeCount > 0 { try removeExtendedAttributes(of: node.number) }
    try remove(.inode, rowKeys.inode(node.number))
    try removeObject(PendingRemoval(node))
  }

  /// Marks an object, if there is one, to go after the commit, and then the mark; else takes the mark away.
  func removeObject(_ removal: PendingRemoval) throws {
    if removal.object == nil {
      try removePending(removal.mark)
    } else {
      try addPending(removal)
      removeObjectAfterCommit(removal)
    }
  }

  /// Groups of 64 map pages that one operation removes at most.
  private static let portion = 32

  /// Removes the rows of map pages from group `start` on; returns the group to go on with, or nil at the end.
  ///
  /// Without a record, as an import leaves it that a crash ended, there is no size to go by: its blocks lie side by side,
  /// so the first directory without a row ends them.
  func removePages(of number: InodeNumber, _ node: ListedNode?, from start: UInt64) throws -> UInt64? {
    var end: UInt64?
    var pages = UInt64.max
    if let node {
      if node.object == nil { return nil }
      pages = node.pageCount
      end = (pages + MapDirectory.pagesPerGroup - 1) / MapDirectory.pagesPerGroup
    }
    // Whatever is no longer than a group has no directory.
    if let end, end <= 1, start == 0 {
      for page in 0..<pages { try remove(.map, rowKeys.mapPage(number, page)) }
      return nil
    }
    let perDirectory = MapDirectory.groupsPerDirectory
    var group = start
    var left = Self.portion
    while end.map({ group < $0 }) ?? true {
      let index = group / perDirectory
      var directory = try mapDirectory(number, index)
      let isLast = directory.isEmpty
      if index == 0 { directory[0] = true }
      while let next = directory.next(from: Int(group - index * perDirectory)) {
        group = index * perDirectory + UInt64(next)
        if left == 0 { return group }
        left -= 1
        let first = group * MapDirectory.pagesPerGroup
        for page in first..<max(first, min(pages, first + MapDirectory.pagesPerGroup)) {
          try remove(.map, rowKeys.mapPage(number, page))
        }
        group += 1
        if group % perDirectory == 0 { break }
      }
      try remove(.mapDirectory, rowKeys.mapDirectory(number, index))
      if end == nil, isLast { return nil }
      group = (index + 1) * perDirectory
    }
    return nil
  }
}
