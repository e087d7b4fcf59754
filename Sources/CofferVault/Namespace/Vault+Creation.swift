internal import CofferCrypto
public import CofferFiles
internal import CofferSystem

/// New files, folders, links and special files. Each throws `invalidName`, `notFound` or `notADirectory` for the folder,
/// and `exists`.
extension Vault {
  /// Makes an empty file.
  public func makeFile(
    _ name: [UInt8], in folder: InodeNumber, _ node: NewNode
  ) throws(VaultError) -> FileAttributes {
    try make(name, in: folder) { session, parent in try newFile(node, in: parent, session).inode }
  }

  /// Makes an empty folder.
  public func makeFolder(
    _ name: [UInt8], in folder: InodeNumber, _ node: NewNode
  ) throws(VaultError) -> FileAttributes {
    try make(name, in: folder) { session, parent in newFolder(node, in: parent, session) }
  }

  /// Makes a symbolic link. `target` has 1 to 4,095 bytes and no zero byte, and need not lead anywhere. Throws
  /// `invalidLink` too.
  public func makeSymbolicLink(
    _ name: [UInt8], in folder: InodeNumber, to target: [UInt8], _ node: NewNode
  ) throws(VaultError) -> FileAttributes {
    try make(name, in: folder) { session, parent in try newLink(to: target, node, in: parent, session) }
  }

  /// Makes a fifo or a socket's name. Throws `wrongKind` for any other kind.
  public func makeSpecial(
    _ kind: NodeKind, _ name: [UInt8], in folder: InodeNumber, _ node: NewNode
  ) throws(VaultError) -> FileAttributes {
    guard kind == .fifo || kind == .socket else { throw .wrongKind }
    return try make(name, in: folder) { session, parent in
      newInode(session.newInodeNumber(), kind, node, in: parent, content: .special)
    }
  }

  /// Makes a symbolic link at `path`, as above; in place of anything but a folder where `replacing`.
  @discardableResult
  public func makeSymbolicLink(
    at path: VaultPath, to target: [UInt8], replacing: Bool = false
  ) throws(VaultError) -> FileAttributes {
    try change(adding: .rows) { session in
      let (parent, name) = try session.place(of: path)
      let inode = try newLink(to: target, NewNode(permissions: 0o777), in: parent, session)
      try insert(inode, as: name, in: parent.number, replacing: replacing, session)
      return attributes(of: inode, session)
    }
  }

  /// Makes a folder, and where `withParents` those above it that are missing; an existing folder is then no error.
  public func makeDirectory(at path: VaultPath, permissions: UInt16 = 0o700, withParents: Bool = false)
    throws(VaultError)
  {
    let node = NewNode(permissions: permissions)
    try change(adding: .rows) { session in
      if withParents {
        for depth in path.names.indices.dropLast() {
          try makeDirectory(at: path.prefix(depth + 1), node, allowExisting: true, session)
        }
      }
      try makeDirectory(at: path, node, allowExisting: withParents, session)
    }
  }

  private func makeDirectory(
    at path: VaultPath, _ node: NewNode, allowExisting: Bool, _ session: IndexSession
  ) throws {
    guard let name = path.lastName else {
      if allowExisting { return }
      throw VaultError.exists
    }
    let parent = try session.resolveFolder(path.parent)
    if allowExisting, let existing = try session.entry(name, in: parent.number) {
      guard existing.kind == .directory else { throw VaultError.notADirectory }
      return
    }
    try insert(newFolder(node, in: parent, session), as: name, in: parent.number, session)
  }

  // MARK: Inodes

  private func make(
    _ name: [UInt8], in folder: InodeNumber, _ inode: (IndexSession, Inode) throws -> Inode
  ) throws(VaultError) -> FileAttributes {
    try change(adding: .rows) { session in
      let name = try VaultPath.checked(name)
      let parent = try session.folder(folder)
      let made = try inode(session, parent)
      try insert(made, as: name, in: parent.number, session)
      return attributes(of: made, session)
    }
  }

  func newFile(
    _ node: NewNode, in parent: Inode, _ session: IndexSession
  ) throws -> (inode: Inode, cipher: FileCipher) {
    let number = session.newInodeNumber()
    let cipher = FileCipher(key: SecretKey(), vault: id, inode: number)
    var inode = newInode(number, .file, node, in: parent, content: .inline(FileCipher.nothing))
    inode.wrappedKey = try keys.wrap(cipher.key, for: inode.protection)
    inode.keyCommitment = cipher.key.commitment
    return (inode, cipher)
  }

  private func newFolder(_ node: NewNode, in parent: Inode, _ session: IndexSession) -> Inode {
    newInode(
      session.newInodeNumber(), .directory, node, in: parent,
      content: .directory(FolderContent(parent: parent.number)))
  }

  private func newLink(
    to target: [UInt8], _ node: NewNode, in parent: Inode, _ session: IndexSession
  ) throws(VaultError) -> Inode {
    guard (1...VaultFormat.linkTargetLimit).contains(target.count), !target.contains(0) else { throw .invalidLink }
    return newInode(session.newInodeNumber(), .symbolicLink, node, in: parent, content: .symbolicLink(target: target))
  }

  private func newInode(
    _ number: InodeNumber, _ kind: NodeKind, _ node: NewNode, in parent: Inode, content: Inode.Content
  ) -> Inode {
    let now = time.now()
    return Inode(
      number: number, kind: kind, protection: newClass(in: parent), permissions: node.permissions & 0o7777,
      owner: node.owner, modified: now, now: now, content: content)
  }

  /// Stores a new inode under a name that must be free, or where `replacing` may be that of anything but a folder.
  func insert(
    _ inode: Inode, as name: [UInt8], in parent: InodeNumber, replacing: Bool = false, _ session: IndexSession
  ) throws {
    let present = try session.entry(name, in: parent)
    if present != nil, !replacing { throw VaultError.exists }
    if present?.kind == .directory { throw VaultError.isADirectory }
    try session.requireRoom()
    if let present {
      try dropName(of: session.inode(present.inode), at: inode.changed, session)
    }
    try session.store(inode)
    try session.link(Entry(name: name, inode: inode.number, kind: inode.kind), in: parent)
    let folders: Int64 = inode.kind == .directory ? 1 : 0
    try session.adjust(parent, by: present == nil ? 1 : 0, folders: folders, at: inode.changed)
  }
}
