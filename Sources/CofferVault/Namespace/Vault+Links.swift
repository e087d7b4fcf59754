public import CofferFiles
internal import CofferSystem

/// The names of files, and symbolic links.
extension Vault {
  /// Gives a file one more name, and returns what it then is. One that was made without a name gets its first.
  ///
  /// Throws `invalidName`, `notFound` for either, `notADirectory`, `exists`, `folderLink` or `tooManyLinks`.
  @discardableResult
  public func link(
    _ number: InodeNumber, as name: [UInt8], in folder: InodeNumber
  ) throws(VaultError) -> FileAttributes {
    // Under no other lock: whoever closes it meanwhile leaves the removal to this use.
    let nameless = files.retainNameless(number)
    defer { if let nameless { files.release(nameless, in: self) } }
    // Who closed it had nobody to store it for: with the name there is somebody.
    try VaultError.catching { try nameless?.join() }
    return try change(adding: .rows) { session in
      let name = try VaultPath.checked(name)
      let inode = try session.node(number)
      // Another thread may have been first.
      let isFirst = inode.linkCount == 0 && (nameless != nil || files.isHeldNameless(number))
      if isFirst {
        try session.removeOrphan(number)
        session.afterOperation { self.files.didName(number) }
      }
      return try link(inode, as: name, in: session.folder(folder).number, isFirst: isFirst, session)
    }
  }

  /// Gives the file at `path` one more name. A symbolic link gets it itself.
  @discardableResult
  public func link(_ path: VaultPath, to new: VaultPath) throws(VaultError) -> FileAttributes {
    try change(adding: .rows) { session in
      let inode = try session.resolve(path)
      guard let name = new.lastName else { throw VaultError.exists }
      return try link(inode, as: name, in: session.resolveFolder(new.parent).number, session)
    }
  }

  private func link(
    _ inode: Inode, as name: [UInt8], in folder: InodeNumber, isFirst: Bool = false, _ session: IndexSession
  ) throws -> FileAttributes {
    guard try session.entry(name, in: folder) == nil else { throw VaultError.exists }
    guard inode.kind != .directory else { throw VaultError.folderLink }
    // Its last name is gone: it stays only for those who have it open.
    guard inode.linkCount > 0 || isFirst else { throw VaultError.notFound }
    guard inode.linkCount < VaultFormat.linkLimit else { throw VaultError.tooManyLinks }
    try session.requireRoom()
    var inode = inode
    inode.linkCount += 1
    inode.changed = time.now()
    try session.store(inode)
    session.note(.attributes(of: inode.number))
    try session.link(Entry(name: name, inode: inode.number, kind: inode.kind), in: folder)
    try session.adjust(folder, by: 1, at: inode.changed)
    return attributes(of: inode, session)
  }

  /// Takes away one name of a file; with the last one, and whoever uses or holds it, the file goes. Throws `invalidName`,
  /// `notFound`, `notADirectory` for `folder` or `isADirectory`.
  public func unlink(_ name: [UInt8], in folder: InodeNumber) throws(VaultError) {
    try change { session in
      let name = try VaultPath.checked(name)
      let folder = try session.folder(folder).number
      guard let entry = try session.entry(name, in: folder) else { throw VaultError.notFound }
      guard entry.kind != .directory else { throw VaultError.isADirectory }
      try remove(entry, in: folder, session)
    }
  }

  /// Removes an empty folder. Throws `invalidName`, `notFound`, `notADirectory` for either or `directoryNotEmpty`.
  public func removeFolder(_ name: [UInt8], in folder: InodeNumber) throws(VaultError) {
    try change { session in
      let name = try VaultPath.checked(name)
      let folder = try session.folder(folder).number
      guard let entry = try session.entry(name, in: folder) else { throw VaultError.notFound }
      guard entry.kind == .directory else { throw VaultError.notADirectory }
      try remove(entry, in: folder, session)
    }
  }

  /// Removes a name, and an empty folder. Throws `notFound`, `notADirectory`, `directoryNotEmpty` or `rootFolder`.
  public func remove(_ path: VaultPath) throws(VaultError) {
    try change { session in
      let (folder, name) = try session.place(of: path)
      guard let entry = try session.entry(name, in: folder.number) else { throw VaultError.notFound }
      try remove(entry, in: folder.number, session)
    }
  }

  private func remove(_ entry: Entry, in folder: InodeNumber, _ session: IndexSession) throws {
    if try removeOnlyName(entry, in: folder, session) { return }
    let inode = try session.inode(entry.inode)
    if case .directory(let content) = inode.content, content.entryCount > 0 { throw VaultError.directoryNotEmpty }
    let now = time.now()
    try session.unlink(entry.name, in: folder)
    try session.adjust(folder, by: -1, folders: inode.kind == .directory ? -1 : 0, at: now)
    try dropName(of: inode, at: now, session)
  }

  /// Removes the only name of anything but a folder, without reading its record: so most go. `false`, and nothing is done, for any
  /// other.
  private func removeOnlyName(_ entry: Entry, in folder: InodeNumber, _ session: IndexSession) throws -> Bool {
    guard entry.kind != .directory, let node = try session.nodeIfPresent(entry.inode),
      node.attributes.kind == entry.kind, node.attributes.linkCount == 1
    else { return false }
    let now = time.now()
    try session.unlink(entry.name, in: folder)
    try session.adjust(folder, by: -1, at: now)
    session.note(.attributes(of: node.number))
    try discard(node, at: now, in: session)
    return true
  }

  /// Counts one name less, and takes the inode apart when it was the last; the name is the caller's to remove.
  func dropName(of inode: Inode, at now: Timestamp, _ session: IndexSession) throws {
    guard inode.linkCount > 0 else { throw VaultError.damaged(what: "a file's count of names") }
    session.note(.attributes(of: inode.number))
    if inode.linkCount == 1 { return try discard(ListedNode(inode), at: now, in: session) }
    var inode = inode
    inode.linkCount -= 1
    inode.changed = now
    try session.store(inode)
  }

  /// What a symbolic link points with. Throws `notFound` or `wrongKind`.
  public func readLink(_ number: InodeNumber) throws(VaultError) -> [UInt8] {
    try look { session in try target(of: session.node(number)) }
  }

  /// As above, for the link at `path`.
  public func readLink(at path: VaultPath) throws(VaultError) -> [UInt8] {
    try look { session in try target(of: session.resolve(path)) }
  }

  private func target(of inode: Inode) throws(VaultError) -> [UInt8] {
    guard case .symbolicLink(let target) = inode.content else { throw .wrongKind }
    return target
  }
}
