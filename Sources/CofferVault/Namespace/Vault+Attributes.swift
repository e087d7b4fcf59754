public import CofferFiles
internal import CofferSystem

/// Attributes of files and folders.
extension Vault {
  /// What `number` is. Throws `notFound`.
  public func attributes(of number: InodeNumber) throws(VaultError) -> FileAttributes {
    try look { session in
      guard let node = try session.nodeIfPresent(number) else { throw VaultError.notFound }
      return present(node.attributes)
    }
  }

  /// What is at `path`. Throws `notFound`, `notADirectory` or `linkLoop`.
  public func attributes(at path: VaultPath, followingLinks: Bool = false) throws(VaultError) -> FileAttributes {
    try look { session in attributes(of: try session.resolve(path, followingLinks: followingLinks), session) }
  }

  /// Makes all of `changes` in one step and returns what is then. `changed` becomes now, unless nothing is to change.
  /// Throws `notFound` or `invalidTime`.
  @discardableResult
  public func setAttributes(_ changes: AttributeChanges, of number: InodeNumber) throws(VaultError) -> FileAttributes {
    try change(adding: .inPlace) { session in try apply(changes, to: session.node(number), session) }
  }

  /// As above, for what is at `path`.
  @discardableResult
  public func setAttributes(
    _ changes: AttributeChanges, at path: VaultPath, followingLinks: Bool = false
  ) throws(VaultError) -> FileAttributes {
    try change(adding: .inPlace) { session in
      try apply(changes, to: session.resolve(path, followingLinks: followingLinks), session)
    }
  }

  func attributes(of inode: Inode, _ session: IndexSession) -> FileAttributes { present(FileAttributes(inode)) }

  /// As above, of an inode that a name or a map leads to.
  func attributes(of number: InodeNumber, _ session: IndexSession) throws -> FileAttributes {
    guard let node = try session.nodeIfPresent(number) else {
      throw VaultError.damaged(what: "an inode is missing")
    }
    return present(node.attributes)
  }

  /// The only way from a record's attributes to what callers are told of them.
  func present(_ stored: FileAttributes) -> FileAttributes {
    // With what was written to an open file and has not joined the index.
    guard stored.kind == .file, let node = files.node(stored.number) else { return stored }
    return node.attributes(over: stored)
  }

  private func apply(_ changes: AttributeChanges, to inode: Inode, _ session: IndexSession) throws -> FileAttributes {
    if changes.isEmpty { return attributes(of: inode, session) }
    var inode = inode
    let now = time.now()
    if let permissions = changes.permissions { inode.permissions = permissions & 0o7777 }
    if let user = changes.user { inode.owner.user = user }
    if let group = changes.group { inode.owner.group = group }
    if let accessed = changes.accessed { inode.accessed = try accessed.moment(now) }
    if let modified = changes.modified { inode.modified = try modified.moment(now) }
    if let created = changes.created { inode.created = try created.moment(now) }
    inode.changed = now
    try session.store(inode)
    session.note(.attributes(of: inode.number))
    if changes.modified != nil { files.node(inode.number)?.forgetModified() }
    return attributes(of: inode, session)
  }
}

extension AttributeChanges.Time {
  fileprivate func moment(_ now: Timestamp) throws(VaultError) -> Timestamp {
    switch self {
    case .now: return now
    case .at(let time):
      guard time.nanoseconds < 1_000_000_000 else { throw .invalidTime }
      return time
    }
  }
}
