internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem

/// Entries and inodes as the operations see them.
extension IndexSession {
  func newInodeNumber() -> InodeNumber {
    defer { root.nextInode += 1 }
    return InodeNumber(value: root.nextInode)
  }

  // MARK: Entries

  func entry(_ name: [UInt8], in parent: InodeNumber) throws -> Entry? {
    try entries(at: rowKeys.entry(parent: parent, name: name), parent: parent).first { $0.name == name }
  }

  /// Gives `name` to `inode`, in place of what had it. The folder's count is the caller's to change.
  func link(_ entry: Entry, in parent: InodeNumber) throws {
    let key = rowKeys.entry(parent: parent, name: entry.name)
    let others = try entries(at: key, parent: parent).filter { $0.name != entry.name }
    try set(.entry, key, Entry.encode(others + [entry], parent: parent))
  }

  func unlink(_ name: [UInt8], in parent: InodeNumber) throws {
    let key = rowKeys.entry(parent: parent, name: name)
    let others = try entries(at: key, parent: parent).filter { $0.name != name }
    if others.isEmpty { try remove(.entry, key) } else { try set(.entry, key, Entry.encode(others, parent: parent)) }
  }

  /// Entries of a folder in the order of their keys, from after `last` on, about `limit` of them.
  func entries(of parent: InodeNumber, after last: RowKey?, limit: Int) throws -> (entries: [Entry], last: RowKey?) {
    let found = try rows(.entry, prefix: rowKeys.entryPrefix(parent: parent), after: last, limit: limit)
    return (try found.flatMap { try Entry.decode($0.1, parent: parent) }, found.last?.0)
  }

  private func entries(at key: RowKey, parent: InodeNumber) throws -> [Entry] {
    try value(.entry, key).map { try Entry.decode($0, parent: parent) } ?? []
  }

  // MARK: Paths

  /// The inode at `path`. Throws `notFound` or `notADirectory`.
  func resolve(_ path: VaultPath) throws -> Inode {
    var current = InodeNumber.rootFolder
    for (position, name) in path.names.enumerated() {
      guard let found = try entry(name, in: current) else { throw VaultError.notFound }
      if position + 1 < path.names.count, found.kind != .directory { throw VaultError.notADirectory }
      current = found.inode
    }
    return try inode(current)
  }

  func resolveFolder(_ path: VaultPath) throws -> Inode {
    let found = try resolve(path)
    guard found.kind == .directory else { throw VaultError.notADirectory }
    return found
  }

  /// Changes how many names a folder holds, and its times.
  func adjust(_ folder: InodeNumber, by difference: Int64, at time: Timestamp) throws {
    var inode = try inode(folder)
    guard case .directory(var content) = inode.content else { throw VaultError.notADirectory }
    content.entryCount &+= UInt64(bitPattern: difference)
    inode.content = .directory(content)
    inode.modified = time
    inode.changed = time
    try store(inode)
  }

  // MARK: Map pages

  func mapPage(_ inode: InodeNumber, _ index: UInt64) throws -> MapPage {
    guard let bytes = try value(.map, rowKeys.mapPage(inode, index)) else {
      throw VaultError.damaged(what: "a page of a file's block map is missing")
    }
    return try MapPage(decoding: bytes, inode: inode, index: index)
  }

  func store(_ page: MapPage) throws { try set(.map, rowKeys.mapPage(page.inode, page.index), page.encoded()) }

  // MARK: Removal

  func addPending(_ removal: PendingRemoval) throws {
    try set(.pending, rowKeys.pending(removal.inode), removal.encoded())
  }

  func removePending(_ inode: InodeNumber) throws { try remove(.pending, rowKeys.pending(inode)) }

  func pendingRemovals() throws -> [PendingRemoval] {
    var result: [PendingRemoval] = []
    var last: RowKey?
    repeat {
      let found = try rows(.pending, prefix: rowKeys.pendingPrefix, after: last, limit: 256)
      result += try found.map { try PendingRemoval(decoding: $0.1) }
      last = found.last?.0
    } while last != nil
    return result
  }

  /// Removes what an import that failed has stored, and its mark.
  func takeApart(_ inode: InodeNumber) throws {
    guard let bytes = try value(.pending, rowKeys.pending(inode)) else { return }
    try removeRows(of: PendingRemoval(decoding: bytes))
    try removePending(inode)
  }

  /// Removes the rows of something that no name leads to.
  func removeRows(of removal: PendingRemoval) throws {
    for page in 0..<removal.pageCount { try remove(.map, rowKeys.mapPage(removal.inode, page)) }
    try remove(.inode, rowKeys.inode(removal.inode))
  }
}

extension PendingRemoval {
  init(_ inode: Inode) {
    var object: ObjectReference?
    var pages: UInt64 = 0
    if case .object(let reference, _) = inode.content {
      object = reference
      pages = MapPage.pageCount(blockCount: reference.blockCount(of: inode.byteCount))
    }
    self.init(inode: inode.number, object: object, pageCount: pages)
  }
}
