public import CofferFiles

extension Vault {
  /// Removes a file, or a folder with everything in it. Each removal is an operation of its own: stopped in between, the
  /// rest is still there. Names that others add or take away meanwhile are no error.
  public func removeRecursively(_ path: VaultPath, control: TransferControl = TransferControl()) throws(VaultError) {
    var branches = [try look { session in try Branch(session.place(of: path), session) }]
    // An explicit stack: a tree may be deeper than the thread's. It holds at most one portion for each level.
    while let branch = branches.last {
      if control.isCancelled() { throw .cancelled }
      let children = try branch.kind == .directory ? names(in: branch) : []
      guard let last = children.last else {
        if try removeName(branch) {
          control.progress(1)
          branches.removeLast()
        } else {
          // Others have put new names where the reading had passed.
          branches[branches.count - 1].cookie = nil
        }
        continue
      }
      branches[branches.count - 1].cookie = last.cookie
      for child in children where child.kind != .directory {
        if control.isCancelled() { throw .cancelled }
        if try removeName(Branch(child, in: branch.number)) { control.progress(1) }
      }
      for child in children where child.kind == .directory { branches.append(Branch(child, in: branch.number)) }
    }
  }

  /// A name that is to go, with what it stood for when it was read.
  private struct Branch {
    let name: [UInt8]
    let folder: InodeNumber
    let number: InodeNumber
    let kind: NodeKind
    /// Of a folder: how far its names are read.
    var cookie: UInt64?

    init(_ place: (folder: Inode, name: [UInt8]), _ session: IndexSession) throws {
      guard let entry = try session.entry(place.name, in: place.folder.number) else { throw VaultError.notFound }
      (name, folder, number, kind) = (entry.name, place.folder.number, entry.inode, entry.kind)
    }

    init(_ entry: FolderEntry, in folder: InodeNumber) {
      self.folder = folder
      (name, number, kind) = (entry.name, entry.number, entry.kind)
    }
  }

  /// The next names of a folder, without attributes; none where it is gone.
  private func names(in branch: Branch) throws(VaultError) -> [FolderEntry] {
    do {
      return try readFolder(branch.number, after: branch.cookie, limit: 128, withAttributes: false)
    } catch .notFound {
      return []
    }
  }

  /// Takes away a name if it still stands for what it stood for; `false` where a folder has got new names.
  private func removeName(_ branch: Branch) throws(VaultError) -> Bool {
    do {
      let isThere = try look { session in
        try session.entry(branch.name, in: branch.folder)?.inode == branch.number
      }
      if !isThere { return true }
      if branch.kind == .directory {
        try removeFolder(branch.name, in: branch.folder)
      } else {
        try unlink(branch.name, in: branch.folder)
      }
      return true
    } catch .directoryNotEmpty {
      return false
    } catch .notFound, .notADirectory, .isADirectory {
      return true
    }
  }
}
