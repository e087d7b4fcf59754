internal import CofferFiles

/// Ways from a path to what it names.
extension IndexSession {
  /// The inode at `path`. Throws `notFound`, `notADirectory` or `linkLoop`.
  ///
  /// - Parameter followingLinks: goes through symbolic links, at the end of the path too. Without it, a link is what it
  ///   is at the end, and no folder before that.
  func resolve(_ path: VaultPath, followingLinks: Bool = false) throws -> Inode {
    if followingLinks { return try LinkWalk(session: self).walk(path) }
    var current = InodeNumber.rootFolder
    for (position, name) in path.names.enumerated() {
      guard let found = try entry(name, in: current) else { throw VaultError.notFound }
      if position + 1 < path.names.count, found.kind != .directory { throw VaultError.notADirectory }
      current = found.inode
    }
    return try inode(current)
  }

  func resolveFolder(_ path: VaultPath) throws -> Inode {
    let found = try resolve(path)
    guard found.kind == .directory else { throw VaultError.notADirectory }
    return found
  }

  /// The folder that `path` lies in, and its name there. Throws `rootFolder`, which lies in none.
  func place(of path: VaultPath) throws -> (folder: Inode, name: [UInt8]) {
    guard let name = path.lastName else { throw VaultError.rootFolder }
    return (try resolveFolder(path.parent), name)
  }
}

/// Goes down a path and through the symbolic links on it, as POSIX resolves a pathname: in a link's target, `.`, `..`
/// and a leading slash mean what they mean, within the vault.
private struct LinkWalk {
  let session: IndexSession
  /// As on Linux.
  private static let linkLimit = 40

  func walk(_ path: VaultPath) throws -> Inode {
    // What is still to be gone, the next name last.
    var rest = Array(path.names.reversed())
    var current = Entry(name: [], inode: .rootFolder, kind: .directory)
    var linkCount = 0
    while let name = rest.popLast() {
      guard current.kind == .directory else { throw VaultError.notADirectory }
      if name == Self.this { continue }
      if name == Self.above {
        current = Entry(name: [], inode: try parent(of: current.inode), kind: .directory)
        continue
      }
      guard let next = try session.entry(VaultPath.checked(name), in: current.inode) else { throw VaultError.notFound }
      guard next.kind == .symbolicLink else {
        current = next
        continue
      }
      linkCount += 1
      guard linkCount <= Self.linkLimit else { throw VaultError.linkLoop }
      guard case .symbolicLink(let target) = try session.inode(next.inode).content else { throw VaultError.wrongKind }
      if target.first == Self.slash { current = Entry(name: [], inode: .rootFolder, kind: .directory) }
      // A slash at the end asks for a folder, as a dot behind it does.
      if target.last == Self.slash { rest.append(Self.this) }
      rest += target.split(separator: Self.slash).reversed().map(Array.init)
    }
    return try session.inode(current.inode)
  }

  private func parent(of folder: InodeNumber) throws -> InodeNumber {
    guard case .directory(let content) = try session.inode(folder).content else { throw VaultError.notADirectory }
    return content.parent
  }

  private static let slash = UInt8(ascii: "/")
  private static let this = [UInt8(ascii: ".")]
  private static let above = [UInt8(ascii: "."), UInt8(ascii: ".")]
}
