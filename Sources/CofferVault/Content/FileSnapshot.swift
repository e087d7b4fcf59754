public import CofferFiles
internal import CofferSystem
internal import Synchronization

/// One version of a file's content, readable until it is released whatever happens to the file and its name.
///
/// While it lives, slots that were freed after it wait; see ``ContentPin`` for what memory that takes.
public final class FileSnapshot: Sendable {
  public let attributes: FileAttributes
  public var byteCount: UInt64 { attributes.byteCount }

  private let vault: Vault
  private let node: FileNode
  private nonisolated(unsafe) let version: FileNode.Version

  /// Takes over a use of the node, also where it throws.
  init(_ node: FileNode, in vault: Vault, attributes: @autoclosure () throws -> FileAttributes) throws {
    self.node = node
    self.vault = vault
    do {
      version = try node.pinVersion()
    } catch {
      vault.files.release(node, in: vault)
      throw error
    }
    do {
      var attributes = try attributes()
      attributes.byteCount = version.byteCount
      attributes.revision = version.revision
      self.attributes = attributes
    } catch {
      node.release(version)
      vault.files.release(node, in: vault)
      throw error
    }
  }

  deinit {
    node.release(version)
    vault.files.release(node, in: vault)
  }

  /// Reads at `offset` until `buffer` is full or the content ends; returns how many bytes. Behind them `buffer` may change, up
  /// to the end of the last block.
  ///
  /// Throws `damaged` when the stored blocks are not those that were written; the buffer then holds none of them.
  public func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws(VaultError) -> Int {
    guard offset < byteCount, !buffer.isEmpty else { return 0 }
    return try VaultError.catching {
      guard let sealed = version.sealedPlain else { return try node.read(at: offset, into: buffer, of: version.pin) }
      let count = Int(min(UInt64(buffer.count), byteCount - offset))
      return try node.reading {
        try node.readersCipher().withInline(sealed) { plain in
          buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: plain[Int(offset)..<(Int(offset) + count)]))
          return count
        }
      }
    }
  }
}

extension Vault {
  /// Opens the present version of a file. Throws `notFound`, `isADirectory` or `wrongKind`.
  public func snapshot(of path: VaultPath) throws(VaultError) -> FileSnapshot {
    try snapshot { try $0.resolve(path) }
  }

  /// As above, by the file's number.
  func snapshot(of number: InodeNumber) throws(VaultError) -> FileSnapshot { try snapshot { try $0.node(number) } }

  private func snapshot(of find: (IndexSession) throws -> Inode) throws(VaultError) -> FileSnapshot {
    let (node, attributes) = try look { session in
      let inode = try find(session)
      // Used before the index's lock is let go, so that no removal comes between.
      let node = try self.node(of: inode)
      return (node, node.attributes(over: FileAttributes(inode)))
    }
    return try VaultError.catching { try FileSnapshot(node, in: self, attributes: attributes) }
  }

  /// Whether `path` still names the version that `snapshot` holds.
  public func isCurrent(_ snapshot: FileSnapshot, at path: VaultPath) throws(VaultError) -> Bool {
    do {
      let now = try attributes(at: path)
      return now.number == snapshot.attributes.number && now.revision == snapshot.attributes.revision
    } catch VaultError.notFound, VaultError.notADirectory {
      return false
    }
  }
}
