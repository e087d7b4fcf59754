import CofferFiles
import CofferSystem
import CofferVault

/// A file system in memory with the promises of POSIX, in the simplest form. Operations are in `NamespaceModel+…`; each
/// names the error that the manual page of its system call has for the case.
struct NamespaceModel {
  /// An inode.
  final class Node {
    let number: InodeNumber
    let kind: NodeKind
    var permissions: UInt16
    var owner: FileOwner
    var accessed: Timestamp
    var modified: Timestamp
    var changed: Timestamp
    var created: Timestamp
    var target: [UInt8] = []
    var content: [UInt8] = []
    var extended: [[UInt8]: [UInt8]] = [:]
    var names: [[UInt8]: Node] = [:]
    /// Of a folder.
    unowned var parent: Node?
    /// Names that lead here; 1 for the root.
    var linkCount: UInt32 = 0
    /// Snapshots of it, and whoever else holds it.
    var holders = 0

    init(_ number: InodeNumber, _ kind: NodeKind, _ new: NewNode, at now: Timestamp) {
      self.number = number
      self.kind = kind
      permissions = new.permissions & 0o7777
      owner = new.owner
      (accessed, modified, changed, created) = (now, now, now, now)
    }

    /// As the vault should tell it; what the content's storing decides is left out.
    var attributes: FileAttributes {
      let folders = names.values.count { $0.kind == .directory }
      return FileAttributes(
        number: number, kind: kind, byteCount: UInt64(kind == .symbolicLink ? target.count : content.count),
        storedByteCount: 0, permissions: permissions, owner: owner,
        linkCount: kind == .directory && linkCount > 0 ? UInt32(2 + folders) : linkCount, accessed: accessed,
        modified: modified,
        changed: changed, created: created, protection: .complete, revision: 0)
    }
  }

  let root: Node
  /// Everything that has a name or a holder.
  var nodes: [InodeNumber: Node]
  var now: Timestamp

  init(root attributes: FileAttributes, at now: Timestamp) {
    root = Node(
      attributes.number, .directory, NewNode(permissions: attributes.permissions, owner: attributes.owner), at: now)
    (root.accessed, root.modified) = (attributes.accessed, attributes.modified)
    (root.changed, root.created) = (attributes.changed, attributes.created)
    root.parent = root
    root.linkCount = 1
    nodes = [root.number: root]
    self.now = now
  }

  func node(_ number: InodeNumber) throws(VaultError) -> Node {
    guard let node = nodes[number] else { throw .notFound }  // ENOENT
    return node
  }

  func folder(_ number: InodeNumber) throws(VaultError) -> Node {
    let node = try node(number)
    guard node.kind == .directory else { throw .notADirectory }  // ENOTDIR
    guard node.linkCount > 0 else { throw .notFound }  // ENOENT
    return node
  }

  /// ENAMETOOLONG, or EINVAL.
  func check(_ name: [UInt8]) throws(VaultError) {
    if name.isEmpty || name.count > 255 || name == [46] || name == [46, 46] || name.contains(47) || name.contains(0) {
      throw .invalidName(InvalidName())
    }
  }

  func touch(_ folder: Node) { (folder.modified, folder.changed) = (now, now) }

  /// One name of `node` is gone.
  mutating func drop(_ node: Node) {
    node.linkCount -= 1
    node.changed = now
    bury(node)
  }

  /// What nothing leads to and nobody holds is gone.
  mutating func bury(_ node: Node) { if node.linkCount == 0, node.holders == 0 { nodes[node.number] = nil } }

  // MARK: Paths

  func resolve(_ path: [[UInt8]], followingLinks: Bool = false) throws(VaultError) -> Node {
    var links = 0
    func step(_ current: Node, _ path: ArraySlice<[UInt8]>) throws(VaultError) -> Node {
      guard let name = path.first else { return current }
      guard current.kind == .directory else { throw .notADirectory }  // ENOTDIR
      let rest = path.dropFirst()
      if name == [46] { return try step(current, rest) }
      if name == [46, 46] { return try step(current.parent ?? root, rest) }
      try check(name)
      guard let next = current.names[name] else { throw .notFound }  // ENOENT
      guard followingLinks, next.kind == .symbolicLink else { return try step(next, rest) }
      links += 1
      guard links <= 40 else { throw .linkLoop }  // ELOOP
      var way = next.target.split(separator: 47).map(Array.init)
      if next.target.last == 47 { way.append([46]) }
      return try step(next.target.first == 47 ? root : current, (way + rest)[...])
    }
    return try step(root, path[...])
  }

  func parentFolder(_ path: [[UInt8]]) throws(VaultError) -> Node {
    let folder = try resolve(path.dropLast())
    guard folder.kind == .directory else { throw .notADirectory }
    return folder
  }
}
