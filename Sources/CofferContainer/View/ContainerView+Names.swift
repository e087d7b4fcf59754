public import CofferFiles
internal import CofferVault

/// Names and folders.
extension ContainerView {
  /// Throws `notFound`, `notADirectory` or `nameTooLong`.
  public func lookup(_ name: [UInt8], in folder: InodeNumber) throws(ViewError) -> FileAttributes {
    try Self.check(name)
    return try perform(.reading, on: folder) { try $0.lookup(name, in: folder) }
  }

  /// Names behind a cookie, in portions; see ``Vault/readFolder(_:after:limit:withAttributes:)``.
  public func readFolder(
    _ folder: InodeNumber, after cookie: UInt64?, limit: Int, withAttributes: Bool
  ) throws(ViewError) -> [FolderEntry] {
    try perform(.reading, on: folder) {
      try $0.readFolder(folder, after: cookie, limit: limit, withAttributes: withAttributes)
    }
  }

  /// Whether a reading of the folder would begin with what is in memory; see ``Vault/isListingAtHand(_:)``. Also where nothing
  /// passes any more.
  public func isListingAtHand(_ folder: InodeNumber) -> Bool {
    (try? perform(.reading, on: folder) { $0.isListingAtHand(folder) }) ?? true
  }

  /// The folder that holds a folder; the view's root is its own.
  public func parent(of folder: InodeNumber) throws(ViewError) -> InodeNumber {
    if folder == root { return root }
    return try perform(.reading, on: folder) { try $0.parent(of: folder) }
  }

  /// The names that lead to a folder from the view's root; nil where none do. Reads the folders in between until it comes upon each.
  public func path(to folder: InodeNumber) throws(ViewError) -> [[UInt8]]? {
    // First whether it lies below the root, for to find a name takes longer.
    var way = [folder]
    while let folder = way.last, folder != root {
      let parent = try parent(of: folder)
      if parent == folder { return nil }
      way.append(parent)
    }
    var names: [[UInt8]] = []
    for (folder, parent) in zip(way, way.dropFirst()).reversed() {
      guard let name = try name(of: folder, in: parent) else { return nil }
      names.append(name)
    }
    return names
  }

  /// What a folder is called in the one that it lies in; nil where it lies elsewhere.
  public func name(of folder: InodeNumber, in parent: InodeNumber) throws(ViewError) -> [UInt8]? {
    var cookie: UInt64?
    repeat {
      let portion = try readFolder(parent, after: cookie, limit: 1 << 10, withAttributes: false)
      if let found = portion.first(where: { $0.number == folder }) { return found.name }
      cookie = portion.last?.cookie
    } while cookie != nil
    return nil
  }

  public func makeFolder(
    _ name: [UInt8], in folder: InodeNumber, _ node: NewNode
  ) throws(ViewError) -> FileAttributes {
    try Self.check(name)
    return try perform(.writing, on: folder) { try $0.makeFolder(name, in: folder, $0.inheriting(node, folder, true)) }
  }

  public func makeSymbolicLink(
    _ name: [UInt8], in folder: InodeNumber, to target: [UInt8], _ node: NewNode
  ) throws(ViewError) -> FileAttributes {
    try Self.check(name)
    return try perform(.writing, on: folder) {
      try $0.makeSymbolicLink(name, in: folder, to: target, $0.inheriting(node, folder))
    }
  }

  /// A file, a fifo or a socket's name, without opening it. Throws `notPermitted` for any other kind.
  public func makeNode(
    _ kind: NodeKind, _ name: [UInt8], in folder: InodeNumber, _ node: NewNode
  ) throws(ViewError) -> FileAttributes {
    try Self.check(name)
    return try perform(.writing, on: folder) { vault in
      let node = try vault.inheriting(node, folder)
      switch kind {
      case .file: return try vault.makeFile(name, in: folder, node)
      case .fifo, .socket: return try vault.makeSpecial(kind, name, in: folder, node)
      case .directory, .symbolicLink: throw ViewError.notPermitted
      }
    }
  }

  public func readLink(_ number: InodeNumber) throws(ViewError) -> [UInt8] {
    try perform(.reading, on: number) { try $0.readLink(number) }
  }

  public func link(
    _ number: InodeNumber, as name: [UInt8], in folder: InodeNumber
  ) throws(ViewError) -> FileAttributes {
    try Self.check(name)
    return try perform(.writing, on: folder) { try $0.link(number, as: name, in: folder) }
  }

  public func unlink(_ name: [UInt8], in folder: InodeNumber) throws(ViewError) {
    try Self.check(name)
    try perform(.writing, on: folder) { try $0.unlink(name, in: folder) }
  }

  public func removeFolder(_ name: [UInt8], in folder: InodeNumber) throws(ViewError) {
    try Self.check(name)
    try perform(.writing, on: folder) { try $0.removeFolder(name, in: folder) }
  }

  /// What was written to a file that gets another name joins the vault before: a crash later finds the old content under
  /// the name or the new one, and nothing between.
  public func rename(
    _ name: [UInt8], in folder: InodeNumber, to newName: [UInt8], in newFolder: InodeNumber, mode: RenameMode
  ) throws(ViewError) {
    try Self.check(name)
    try Self.check(newName)
    try permit(.writing, newFolder)
    try perform(.writing, on: folder) { vault in
      var moved = [try vault.lookup(name, in: folder)]
      if mode == .exchange { moved.append(try vault.lookup(newName, in: newFolder)) }
      for node in moved where node.kind == .file { try vault.joinContent(of: node.number) }
      try vault.rename(name, in: folder, to: newName, in: newFolder, mode: mode)
    }
  }

  private static func check(_ name: [UInt8]) throws(ViewError) {
    if name.count > VaultPath.nameLimit { throw .nameTooLong }
  }
}

extension Vault {
  /// What a new node gets of its folder: of one with the set-group-ID bit the group, and a folder that bit, as BSD and
  /// Linux have it.
  func inheriting(_ node: NewNode, _ folder: InodeNumber, _ isFolder: Bool = false) throws(VaultError) -> NewNode {
    let parent = try attributes(of: folder)
    guard parent.permissions & 0o2000 != 0 else { return node }
    var node = node
    node.owner.group = parent.owner.group
    if isFolder { node.permissions |= 0o2000 }
    return node
  }
}
