import CofferFiles
import CofferSystem
import CofferVault

/// Operations on names.
extension NamespaceModel {
  func lookup(_ name: [UInt8], in folder: InodeNumber) throws(VaultError) -> FileAttributes {
    try check(name)
    guard let node = try self.folder(folder).names[name] else { throw .notFound }
    return node.attributes
  }

  /// mkdir, mknod, symlink, open with O_CREAT | O_EXCL.
  mutating func make(
    _ kind: NodeKind, _ name: [UInt8], in folder: InodeNumber, _ new: NewNode, to target: [UInt8] = [],
    number: InodeNumber
  ) throws(VaultError) -> FileAttributes {
    try check(name)
    let folder = try self.folder(folder)
    if kind == .symbolicLink, target.isEmpty || target.count > 4095 || target.contains(0) { throw .invalidLink }
    guard folder.names[name] == nil else { throw .exists }  // EEXIST
    let node = Node(number, kind, new, at: now)
    node.target = target
    node.linkCount = 1
    node.parent = kind == .directory ? folder : nil
    nodes[number] = node
    folder.names[name] = node
    touch(folder)
    return node.attributes
  }

  /// link.
  mutating func link(_ number: InodeNumber, as name: [UInt8], in folder: InodeNumber) throws(VaultError)
    -> FileAttributes
  {
    try check(name)
    let node = try node(number)
    let folder = try self.folder(folder)
    guard folder.names[name] == nil else { throw .exists }  // EEXIST
    guard node.kind != .directory else { throw .folderLink }  // EPERM
    guard node.linkCount > 0 else { throw .notFound }  // ENOENT
    node.linkCount += 1
    node.changed = now
    folder.names[name] = node
    touch(folder)
    return node.attributes
  }

  /// unlink.
  mutating func unlink(_ name: [UInt8], in folder: InodeNumber) throws(VaultError) {
    try check(name)
    let folder = try self.folder(folder)
    guard let node = folder.names[name] else { throw .notFound }  // ENOENT
    guard node.kind != .directory else { throw .isADirectory }  // EISDIR
    remove(name, node, in: folder)
  }

  /// rmdir.
  mutating func removeFolder(_ name: [UInt8], in folder: InodeNumber) throws(VaultError) {
    try check(name)
    let folder = try self.folder(folder)
    guard let node = folder.names[name] else { throw .notFound }  // ENOENT
    guard node.kind == .directory else { throw .notADirectory }  // ENOTDIR
    guard node.names.isEmpty else { throw .directoryNotEmpty }  // ENOTEMPTY
    remove(name, node, in: folder)
  }

  mutating func remove(_ path: [[UInt8]]) throws(VaultError) {
    guard let name = path.last else { throw .rootFolder }  // EBUSY
    let folder = try parentFolder(path)
    guard let node = folder.names[name] else { throw .notFound }
    guard node.names.isEmpty else { throw .directoryNotEmpty }
    remove(name, node, in: folder)
  }

  /// rm -r.
  mutating func removeRecursively(_ path: [[UInt8]]) throws(VaultError) {
    guard let name = path.last else { throw .rootFolder }
    let folder = try parentFolder(path)
    guard let node = folder.names[name] else { throw .notFound }
    for inner in Array(node.names.keys) { try removeRecursively(path + [inner]) }
    remove(name, node, in: folder)
  }

  private mutating func remove(_ name: [UInt8], _ node: Node, in folder: Node) {
    folder.names[name] = nil
    touch(folder)
    drop(node)
  }

  /// renameat2.
  mutating func rename(
    _ name: [UInt8], in folder: InodeNumber, to newName: [UInt8], in newFolder: InodeNumber, _ mode: RenameMode
  ) throws(VaultError) {
    try check(name)
    try check(newName)
    try rename(name, in: self.folder(folder), to: newName, in: self.folder(newFolder), mode)
  }

  mutating func rename(_ path: [[UInt8]], to new: [[UInt8]], _ mode: RenameMode) throws(VaultError) {
    guard let name = path.last, let newName = new.last else { throw .rootFolder }
    let folder = try parentFolder(path)
    guard folder.names[name] != nil else { throw .notFound }
    try rename(name, in: folder, to: newName, in: parentFolder(new), mode)
  }

  private mutating func rename(
    _ name: [UInt8], in folder: Node, to newName: [UInt8], in newFolder: Node, _ mode: RenameMode
  ) throws(VaultError) {
    guard let moved = folder.names[name] else { throw .notFound }  // ENOENT
    let target = newFolder.names[newName]
    if mode == .refuse, target != nil { throw .exists }  // EEXIST
    if mode == .exchange, target == nil { throw .notFound }  // ENOENT
    if isWithin(newFolder, moved) { throw .moveIntoItself }  // EINVAL
    if mode == .exchange, let target, isWithin(folder, target) { throw .moveIntoItself }  // EINVAL
    if target === moved { return }
    if let target, mode == .exchange {
      folder.names[name] = target
      target.changed = now
      if target.kind == .directory { target.parent = folder }
    } else {
      if let target {
        if target.kind == .directory, moved.kind != .directory { throw .isADirectory }  // EISDIR
        if target.kind != .directory, moved.kind == .directory { throw .notADirectory }  // ENOTDIR
        guard target.names.isEmpty else { throw .directoryNotEmpty }  // ENOTEMPTY
        drop(target)
      }
      folder.names[name] = nil
    }
    newFolder.names[newName] = moved
    moved.changed = now
    if moved.kind == .directory { moved.parent = newFolder }
    touch(folder)
    touch(newFolder)
  }

  private func isWithin(_ folder: Node, _ node: Node) -> Bool {
    var current = folder
    while current !== root {
      if current === node { return true }
      guard let parent = current.parent else { return false }
      current = parent
    }
    return false
  }

  /// A file that is imported, in place of one that is there.
  mutating func put(
    _ path: [[UInt8]], _ bytes: [UInt8], _ new: NewNode, modified: Timestamp, replacing: Bool, number: InodeNumber
  ) throws(VaultError) -> FileAttributes {
    guard let name = path.last else { throw .isADirectory }
    let folder = try parentFolder(path)
    if let present = folder.names[name] {
      guard present.kind != .directory else { throw .isADirectory }
      guard replacing else { throw .exists }
      drop(present)
    }
    let node = Node(number, .file, new, at: now)
    (node.accessed, node.modified) = (modified, modified)
    node.content = bytes
    node.linkCount = 1
    nodes[number] = node
    folder.names[name] = node
    touch(folder)
    return node.attributes
  }
}
