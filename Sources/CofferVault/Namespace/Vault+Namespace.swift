public import CofferFiles
internal import CofferSystem

extension Vault {
  /// What is at `path`. Throws `notFound`.
  public func attributes(at path: VaultPath) throws(VaultError) -> FileAttributes {
    try look { FileAttributes(try $0.resolve(path)) }
  }

  /// The entries of a folder, in no particular order. A folder with names has them all in one snapshot.
  public func list(_ path: VaultPath) throws(VaultError) -> [DirectoryEntry] {
    try look { session in
      let folder = try session.resolveFolder(path)
      var result: [DirectoryEntry] = []
      var last: RowKey?
      repeat {
        let found = try session.entries(of: folder.number, after: last, limit: 512)
        for entry in found.entries {
          result.append(DirectoryEntry(name: entry.name, attributes: FileAttributes(try session.inode(entry.inode))))
        }
        last = found.last
      } while last != nil
      return result
    }
  }

  /// Makes a folder, and where `withParents` those above it that are missing; an existing folder is then no error.
  public func makeDirectory(at path: VaultPath, permissions: UInt16 = 0o700, withParents: Bool = false)
    throws(VaultError)
  {
    try change { session in
      if withParents {
        for depth in path.names.indices.dropLast() {
          try self.makeFolder(path.prefix(depth + 1), permissions, allowExisting: true, session)
        }
      }
      try self.makeFolder(path, permissions, allowExisting: withParents, session)
    }
  }

  private func makeFolder(
    _ path: VaultPath, _ permissions: UInt16, allowExisting: Bool, _ session: IndexSession
  ) throws {
    guard let name = path.lastName else {
      if allowExisting { return }
      throw VaultError.exists
    }
    let parent = try session.resolveFolder(path.parent)
    if let existing = try session.entry(name, in: parent.number) {
      guard allowExisting else { throw VaultError.exists }
      guard existing.kind == .directory else { throw VaultError.notADirectory }
      return
    }
    let now = time.now()
    let number = session.newInodeNumber()
    try session.store(
      Inode(
        number: number, kind: .directory, protection: parent.protection, permissions: permissions & 0o7777,
        owner: .process, modified: now, now: now, content: .directory(FolderContent(parent: parent.number))))
    try session.link(Entry(name: name, inode: number, kind: .directory), in: parent.number)
    try session.adjust(parent.number, by: 1, at: now)
  }

  /// Gives a file or folder another name, in place of a file or empty folder that has it where `replacing`.
  ///
  /// Throws `notFound`, `exists`, `moveIntoItself`, `isADirectory`, `notADirectory`, `directoryNotEmpty` or `rootFolder`,
  /// as POSIX rename does.
  public func rename(_ old: VaultPath, to new: VaultPath, replacing: Bool = true) throws(VaultError) {
    try change { session in
      guard let oldName = old.lastName, let newName = new.lastName else { throw VaultError.rootFolder }
      let oldParent = try session.resolveFolder(old.parent)
      guard let moved = try session.entry(oldName, in: oldParent.number) else { throw VaultError.notFound }
      let newParent = try session.resolveFolder(new.parent)
      if moved.kind == .directory { try self.refuseMoveIntoItself(moved.inode, newParent, session) }
      let now = self.time.now()
      if let target = try session.entry(newName, in: newParent.number) {
        if target.inode == moved.inode { return }
        guard replacing else { throw VaultError.exists }
        try self.removeReplaced(target, by: moved, in: newParent.number, session)
      }
      try session.unlink(oldName, in: oldParent.number)
      try session.adjust(oldParent.number, by: -1, at: now)
      try session.link(Entry(name: newName, inode: moved.inode, kind: moved.kind), in: newParent.number)
      try session.adjust(newParent.number, by: 1, at: now)
      var inode = try session.inode(moved.inode)
      inode.changed = now
      if case .directory(var content) = inode.content {
        content.parent = newParent.number
        inode.content = .directory(content)
      }
      try session.store(inode)
    }
  }

  private func refuseMoveIntoItself(_ moved: InodeNumber, _ newParent: Inode, _ session: IndexSession) throws {
    var ancestor = newParent
    while ancestor.number != .rootFolder {
      if ancestor.number == moved { throw VaultError.moveIntoItself }
      guard case .directory(let content) = ancestor.content else { throw VaultError.notADirectory }
      ancestor = try session.inode(content.parent)
    }
  }

  private func removeReplaced(
    _ target: Entry, by moved: Entry, in parent: InodeNumber, _ session: IndexSession
  ) throws {
    let inode = try session.inode(target.inode)
    if case .directory(let content) = inode.content {
      guard moved.kind == .directory else { throw VaultError.isADirectory }
      guard content.entryCount == 0 else { throw VaultError.directoryNotEmpty }
    } else if moved.kind == .directory {
      throw VaultError.notADirectory
    }
    try session.unlink(target.name, in: parent)
    try session.adjust(parent, by: -1, at: time.now())
    try discard(inode, in: session)
  }

  /// Removes a file or an empty folder.
  public func remove(_ path: VaultPath) throws(VaultError) {
    try change { session in
      guard let name = path.lastName else { throw VaultError.rootFolder }
      let parent = try session.resolveFolder(path.parent)
      guard let entry = try session.entry(name, in: parent.number) else { throw VaultError.notFound }
      let inode = try session.inode(entry.inode)
      if case .directory(let content) = inode.content, content.entryCount > 0 { throw VaultError.directoryNotEmpty }
      try session.unlink(name, in: parent.number)
      try session.adjust(parent.number, by: -1, at: self.time.now())
      try self.discard(inode, in: session)
    }
  }

  /// Removes a file, or a folder with everything in it. Each removal is an operation of its own: stopped in between, the
  /// rest is still there.
  public func removeRecursively(_ path: VaultPath, control: TransferControl = TransferControl()) throws(VaultError) {
    guard path.lastName != nil else { throw .rootFolder }
    // An explicit stack: a tree may be deeper than the thread's.
    var stack = [path]
    while let next = stack.last {
      if control.isCancelled() { throw .cancelled }
      let kind = try attributes(at: next).kind
      let children = kind == .directory ? try list(next) : []
      if children.isEmpty {
        try remove(next)
        control.progress(1)
        stack.removeLast()
      } else {
        for child in children { stack.append(try VaultError.catching { try next.appending(child.name) }) }
      }
    }
  }
}
