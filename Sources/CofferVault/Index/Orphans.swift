internal import CofferFiles
internal import CofferSystem

/// What has no name and is there all the same, because somebody uses or holds it: it has lost its last name, or never had one.
///
/// What has lost its last name keeps its record as it was, and what is different is known here alone: most of it goes before a commit would
/// have to store that. A commit marks what is left then, and by these marks whoever opens the vault after a crash removes it.
struct Orphans: Sendable {
  /// Tells the next opening to remove an orphan.
  typealias Mark = (row: RowID, removal: PendingRemoval)

  /// When each has lost its name.
  private var times: [InodeNumber: Timestamp] = [:]
  private var unmarked: [InodeNumber: Mark] = [:]

  func contains(_ number: InodeNumber) -> Bool { !times.isEmpty && times[number] != nil }

  mutating func insert(_ number: InodeNumber, _ mark: Mark, at time: Timestamp) {
    times[number] = time
    unmarked[number] = mark
  }

  /// It is gone, or has a name. A mark that a commit has set for it is the caller's to remove.
  mutating func remove(_ number: InodeNumber) {
    if times.isEmpty { return }
    times[number] = nil
    unmarked[number] = nil
  }

  /// The marks that the commit which begins has to set; they are not given again.
  mutating func takeUnmarked() -> [Mark] {
    defer { unmarked = [:] }
    return Array(unmarked.values)
  }

  /// Where the marks will lie that no commit has set yet.
  var unmarkedBuckets: [Int] { unmarked.values.map(\.row.key.bucket) }

  /// An inode as it is, from what its record says.
  func present(_ stored: Inode) -> Inode {
    guard !times.isEmpty, let time = times[stored.number] else { return stored }
    var inode = stored
    inode.linkCount = 0
    inode.changed = max(inode.changed, time)
    return inode
  }

  func present(_ stored: ListedNode) -> ListedNode {
    guard !times.isEmpty, let time = times[stored.number] else { return stored }
    var node = stored
    node.attributes.linkCount = 0
    node.attributes.changed = max(node.attributes.changed, time)
    return node
  }
}

extension IndexSession {
  /// From the running operation on the inode has no name, and stays until ``removeInode(_:)`` or ``removeOrphan(_:)``.
  func addOrphan(_ node: ListedNode, at time: Timestamp) throws {
    let removal = PendingRemoval(node)
    let row = RowID(kind: .pending, key: rowKeys.pending(removal.mark))
    // The operation is to fail where its mark cannot be set, and not a commit of many.
    try requireOperation(row)
    afterOperation { self.orphans.insert(node.number, (row, removal), at: time) }
  }

  /// From the running operation on it has a name.
  func removeOrphan(_ number: InodeNumber) throws {
    try removePending(number)
    afterOperation { self.orphans.remove(number) }
  }
}
