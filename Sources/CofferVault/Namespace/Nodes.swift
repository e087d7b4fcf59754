internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem

/// Entries and inodes as the operations see them.
extension IndexSession {
  func newInodeNumber() -> InodeNumber {
    defer { root.nextInode += 1 }
    return InodeNumber(value: root.nextInode)
  }

  /// The inode that a caller names by its number. Throws `notFound`, where ``inode(_:)`` finds damage.
  func node(_ number: InodeNumber) throws -> Inode {
    guard let inode = try inodeIfPresent(number) else { throw VaultError.notFound }
    return inode
  }

  /// A folder that a caller names by its number. Throws `notFound`, also for one that is removed and held, or
  /// `notADirectory`.
  func folder(_ number: InodeNumber) throws -> Inode {
    let found = try node(number)
    guard found.kind == .directory else { throw VaultError.notADirectory }
    guard found.linkCount > 0 else { throw VaultError.notFound }
    return found
  }

  // MARK: Entries

  func entry(_ name: [UInt8], in parent: InodeNumber) throws -> Entry? {
    try entries(at: rowKeys.entry(parent: parent, name: name), parent: parent).first { $0.name == name }
  }

  /// Gives a name to an inode, in place of what had it. The folder's counts are the caller's to change.
  func link(_ entry: Entry, in parent: InodeNumber) throws {
    let key = rowKeys.entry(parent: parent, name: entry.name)
    var entries = try entries(at: key, parent: parent)
    var entry = entry
    if let position = entries.firstIndex(where: { $0.name == entry.name }) {
      entry.place = entries[position].place
      entries[position] = entry
    } else {
      // The first place that is free: places ascend.
      let position = entries.indices.first { entries[$0].place != $0 } ?? entries.count
      guard let place = UInt8(exactly: position) else { throw VaultError.nameCollisions }
      entry.place = place
      entries.insert(entry, at: position)
    }
    try set(.entry, key, Entry.encode(entries, parent: parent))
    note(.name(entry.name, in: parent))
    nameChangeCount += 1
  }

  func unlink(_ name: [UInt8], in parent: InodeNumber) throws {
    let key = rowKeys.entry(parent: parent, name: name)
    let others = try entries(at: key, parent: parent).filter { $0.name != name }
    if others.isEmpty { try remove(.entry, key) } else { try set(.entry, key, Entry.encode(others, parent: parent)) }
    note(.name(name, in: parent))
    nameChangeCount += 1
  }

  /// At most `limit` entries of a folder in the order of their cookies, from behind `cookie` on; none at the end.
  func entries(
    of parent: InodeNumber, after cookie: UInt64?, limit: Int
  ) throws -> [(entry: Entry, cookie: UInt64)] {
    // Names that share a row have its suffix and a place each: the row of the cookie is read again.
    let prefix = rowKeys.entryPrefix(parent: parent)
    let suffix = (cookie ?? 0) & ~0xff
    var last = suffix == 0 ? nil : RowKey(high: prefix.high, low: suffix - 1)
    while true {
      let rows = try entryRows(of: parent, prefix: prefix, after: last, limit: limit)
      guard let final = rows.last else { return [] }
      var result: [(Entry, UInt64)] = []
      for (key, entries) in rows {
        for entry in entries {
          let position = key.low | UInt64(entry.place)
          if cookie.map({ $0 < position }) ?? true {
            result.append((entry, position))
            // Whoever removes a tree asks for each name that it is told.
            rowKeys.keep(key, parent: parent, name: entry.name)
          }
        }
        if result.count >= limit { break }
      }
      if !result.isEmpty { return Array(result.prefix(limit)) }
      last = final.key
    }
  }

  private func entries(at key: RowKey, parent: InodeNumber) throws -> [Entry] {
    if let known = listedEntries(at: key) { return known }
    return try value(.entry, key).map { try Entry.decode($0, parent: parent) } ?? []
  }

  /// Changes how many names a folder holds, and how many of them name folders, and its times.
  func adjust(_ folder: InodeNumber, by difference: Int64, folders: Int64 = 0, at time: Timestamp) throws {
    var inode = try inode(folder)
    guard case .directory(var content) = inode.content else { throw VaultError.notADirectory }
    content.entryCount &+= UInt64(bitPattern: difference)
    content.folderCount &+= UInt64(bitPattern: folders)
    inode.content = .directory(content)
    inode.modified = time
    inode.changed = time
    try store(inode)
  }
}
