public import CofferFiles
internal import CofferSystem

extension Vault {
  /// Gives what has a name another one. Where both names lead to the same file, nothing is done.
  ///
  /// Throws as `rename` and `renameat2` do: `invalidName`; `notFound` for the old name, and for the new one in an
  /// exchange; `notADirectory` for either folder; `exists`; `moveIntoItself`; and in a replacement `isADirectory`,
  /// `notADirectory` or `directoryNotEmpty`.
  public func rename(
    _ name: [UInt8], in folder: InodeNumber, to newName: [UInt8], in newFolder: InodeNumber,
    mode: RenameMode = .replace
  ) throws(VaultError) {
    try change(adding: .inPlace) { session in
      let (name, newName) = (try VaultPath.checked(name), try VaultPath.checked(newName))
      try rename(name, in: session.folder(folder), to: newName, in: session.folder(newFolder), mode, session)
    }
  }

  /// As above, by paths. Throws `rootFolder` too.
  public func rename(_ old: VaultPath, to new: VaultPath, mode: RenameMode) throws(VaultError) {
    try change(adding: .inPlace) { session in
      guard let newName = new.lastName else { throw VaultError.rootFolder }
      let (folder, name) = try session.place(of: old)
      guard try session.entry(name, in: folder.number) != nil else { throw VaultError.notFound }
      try rename(name, in: folder, to: newName, in: session.resolveFolder(new.parent), mode, session)
    }
  }

  /// Gives a file or folder another name, in place of a file or empty folder that has it where `replacing`.
  public func rename(_ old: VaultPath, to new: VaultPath, replacing: Bool = true) throws(VaultError) {
    try rename(old, to: new, mode: replacing ? .replace : .refuse)
  }

  private func rename(
    _ name: [UInt8], in folder: Inode, to newName: [UInt8], in newFolder: Inode, _ mode: RenameMode,
    _ session: IndexSession
  ) throws {
    guard let moved = try session.entry(name, in: folder.number) else { throw VaultError.notFound }
    let target = try session.entry(newName, in: newFolder.number)
    if mode == .refuse, target != nil { throw VaultError.exists }
    if mode == .exchange, target == nil { throw VaultError.notFound }
    if folder.number != newFolder.number {
      try refuseMove(of: moved, into: newFolder, session)
      if mode == .exchange, let target { try refuseMove(of: target, into: folder, session) }
    }
    if target?.inode == moved.inode { return }
    let move = Move(entry: moved, from: folder.number, to: newFolder.number, newName: newName)
    if mode == .exchange, let target {
      try exchange(move, target, session)
    } else {
      try replace(target, move, session)
    }
  }

  /// Throws `moveIntoItself` where a folder would come to lie in itself.
  private func refuseMove(of entry: Entry, into folder: Inode, _ session: IndexSession) throws {
    guard entry.kind == .directory else { return }
    var ancestor = folder
    while ancestor.number != .rootFolder {
      if ancestor.number == entry.inode { throw VaultError.moveIntoItself }
      guard case .directory(let content) = ancestor.content else { throw VaultError.notADirectory }
      ancestor = try session.inode(content.parent)
    }
  }

  private struct Move {
    let entry: Entry
    let from: InodeNumber
    let to: InodeNumber
    let newName: [UInt8]
  }

  private func replace(_ target: Entry?, _ move: Move, _ session: IndexSession) throws {
    let now = time.now()
    if let target {
      let inode = try session.inode(target.inode)
      if case .directory(let content) = inode.content {
        guard move.entry.kind == .directory else { throw VaultError.isADirectory }
        guard content.entryCount == 0 else { throw VaultError.directoryNotEmpty }
      } else if move.entry.kind == .directory {
        throw VaultError.notADirectory
      }
      try dropName(of: inode, at: now, session)
    }
    try session.unlink(move.entry.name, in: move.from)
    try session.link(Entry(name: move.newName, inode: move.entry.inode, kind: move.entry.kind), in: move.to)
    let (gone, goneFolder) = (target == nil ? 0 : Int64(1), target?.folderCount ?? 0)
    if move.from == move.to {
      try session.adjust(move.from, by: -gone, folders: -goneFolder, at: now)
    } else {
      try session.adjust(move.from, by: -1, folders: -move.entry.folderCount, at: now)
      try session.adjust(move.to, by: 1 - gone, folders: move.entry.folderCount - goneFolder, at: now)
    }
    try settle(move.entry.inode, as: move.newName, in: move.to, at: now, session)
  }

  private func exchange(_ move: Move, _ target: Entry, _ session: IndexSession) throws {
    let now = time.now()
    let moved = move.entry
    try session.link(Entry(name: moved.name, inode: target.inode, kind: target.kind), in: move.from)
    try session.link(Entry(name: target.name, inode: moved.inode, kind: moved.kind), in: move.to)
    let difference = target.folderCount - moved.folderCount
    if move.from == move.to {
      try session.adjust(move.from, by: 0, at: now)
    } else {
      try session.adjust(move.from, by: 0, folders: difference, at: now)
      try session.adjust(move.to, by: 0, folders: -difference, at: now)
    }
    try settle(moved.inode, as: target.name, in: move.to, at: now, session)
    try settle(target.inode, as: moved.name, in: move.from, at: now, session)
  }

  /// A renamed inode knows when, and a folder where it lies. Who observes hears of every node that a rename locks.
  private func settle(
    _ number: InodeNumber, as name: [UInt8], in folder: InodeNumber, at now: Timestamp, _ session: IndexSession
  ) throws {
    var inode = try session.inode(number)
    inode.changed = now
    if case .directory(var content) = inode.content {
      content.parent = folder
      inode.content = .directory(content)
      session.note(.place(of: number, name: name, in: folder))
    }
    try session.store(inode)
    session.note(.attributes(of: number))
  }
}

extension Entry {
  /// What it adds to its folder's count of folders.
  fileprivate var folderCount: Int64 { kind == .directory ? 1 : 0 }
}
