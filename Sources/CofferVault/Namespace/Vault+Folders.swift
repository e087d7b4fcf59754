public import CofferFiles

/// What folders hold.
extension Vault {
  /// Keeps as many names, and attributes of as many files, in memory for who lists folders again, twice as many at most; and
  /// more of everything else: some ten MiB. Nil gives all of that back.
  public func remember(_ count: Int?) { index.remember(count) }

  /// What has the name in a folder. Throws `invalidName`, `notFound` or `notADirectory`.
  public func lookup(_ name: [UInt8], in folder: InodeNumber) throws(VaultError) -> FileAttributes {
    try look { session in
      let name = try VaultPath.checked(name)
      guard let entry = try session.entry(name, in: session.folder(folder).number) else { throw VaultError.notFound }
      return try attributes(of: entry.inode, session)
    }
  }

  /// The folder that holds a folder; the root folder's is itself. Throws `notFound` or `notADirectory`.
  public func parent(of folder: InodeNumber) throws(VaultError) -> InodeNumber {
    try look { session in
      guard case .directory(let content) = try session.folder(folder).content else { throw VaultError.notADirectory }
      return content.parent
    }
  }

  /// Reads a folder in portions, in no order that means anything: at most `limit` names behind a cookie, and none at the
  /// end. A name that is there during the whole reading is given exactly once, whatever it comes to stand for and
  /// whatever else comes and goes.
  ///
  /// Throws `notFound` or `notADirectory`.
  ///
  /// - Parameters:
  ///   - cookie: that of the last name which the caller has taken; nil for the start.
  ///   - limit: 1 or more.
  public func readFolder(
    _ folder: InodeNumber, after cookie: UInt64? = nil, limit: Int, withAttributes: Bool
  ) throws(VaultError) -> [FolderEntry] {
    try look { session in
      try portion(of: folder, after: cookie, limit: limit, withAttributes: withAttributes, session)
    }
  }

  /// Whether a reading of the folder, with attributes, would begin with what is in memory. Nothing is read for that. Also true of
  /// what cannot be read.
  public func isListingAtHand(_ folder: InodeNumber) -> Bool {
    do {
      return try index.glance { session in
        try portion(of: folder, after: nil, limit: 1, withAttributes: true, session)
      } != nil
    } catch {
      return true
    }
  }

  private func portion(
    of folder: InodeNumber, after cookie: UInt64?, limit: Int, withAttributes: Bool, _ session: IndexSession
  ) throws -> [FolderEntry] {
    let found = try session.entries(of: session.folder(folder).number, after: cookie, limit: max(1, limit))
    return try session.gather(found) { found in
      FolderEntry(
        name: found.entry.name, number: found.entry.inode, kind: found.entry.kind, cookie: found.cookie,
        attributes: withAttributes ? try attributes(of: found.entry.inode, session) : nil)
    }
  }

  /// The entries of a folder, in no particular order, all in one view. Holds them all: a program that can do with less
  /// reads in portions.
  public func list(_ path: VaultPath) throws(VaultError) -> [DirectoryEntry] {
    try look { session in
      let folder = try session.resolveFolder(path).number
      var entries: [Entry] = []
      var cookie: UInt64?
      repeat {
        let found = try session.entries(of: folder, after: cookie, limit: 1 << 16)
        entries += found.map(\.entry)
        cookie = found.last?.cookie
      } while cookie != nil
      return try session.gather(entries) { entry in
        DirectoryEntry(name: entry.name, attributes: try attributes(of: entry.inode, session))
      }
    }
  }
}
