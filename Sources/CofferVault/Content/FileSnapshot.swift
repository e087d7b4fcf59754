internal import CofferCrypto
public import CofferFiles
internal import CofferSystem
internal import Synchronization

/// One version of a file's content, readable until it is released whatever happens to the name.
public final class FileSnapshot: Sendable {
  public let attributes: FileAttributes
  public var byteCount: UInt64 { attributes.byteCount }

  private let vault: Vault
  let inode: Inode
  let cipher: FileCipher
  private let file: OwnedDescriptor?
  private let pages = Mutex<[MapPage]>([])
  /// Pages kept at a time; workers that go through a file side by side use one or two.
  private static let pageLimit = 8

  init(vault: Vault, inode: Inode) throws {
    self.vault = vault
    self.inode = inode
    attributes = FileAttributes(inode)
    do {
      cipher = try FileCipher(inode, keys: vault.keys.classKeys, vault: vault.id)
    } catch {
      throw VaultError.damaged(what: "a file's key")
    }
    if case .object(let object, _) = inode.content { file = try vault.objects.open(object.number) } else { file = nil }
    vault.pin(inode.number)
  }

  deinit { vault.unpin(inode.number) }

  /// Reads at `offset` until `buffer` is full or the content ends; returns how many bytes.
  ///
  /// Throws `damaged` when the stored blocks are not those that were written; the buffer then holds none of them.
  public func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws(VaultError) -> Int {
    guard offset < byteCount, !buffer.isEmpty else { return 0 }
    let count = Int(min(UInt64(buffer.count), byteCount - offset))
    let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    try VaultError.catching {
      do {
        switch inode.content {
        case .directory, .symbolicLink, .special: throw VaultError.isADirectory
        case .inline(let sealed): try readInline(sealed, at: offset, into: target)
        case .object(let object, _): try readBlocks(object, at: offset, into: target)
        }
      } catch {
        target.initializeMemory(as: UInt8.self, repeating: 0)
        throw error
      }
    }
    return count
  }

  private func readInline(_ sealed: [UInt8], at offset: UInt64, into target: UnsafeMutableRawBufferPointer) throws {
    guard let bytes = try? cipher.openInline(sealed), bytes.count == Int(byteCount) else {
      throw VaultError.damaged(what: "a file's content")
    }
    target.copyBytes(from: bytes[Int(offset)..<(Int(offset) + target.count)])
  }

  private func readBlocks(
    _ object: ObjectReference, at offset: UInt64, into target: UnsafeMutableRawBufferPointer
  ) throws {
    let blockSize = object.blockSize
    let scratch = TransferBuffer(count: 2 * blockSize)
    let ciphertext = UnsafeMutableRawBufferPointer(rebasing: scratch.bytes[..<blockSize])
    let plaintext = UnsafeMutableRawBufferPointer(rebasing: scratch.bytes[blockSize...])
    var done = 0
    while done < target.count {
      let position = offset + UInt64(done)
      let within = Int(position % UInt64(blockSize))
      let count = min(blockSize - within, target.count - done)
      try open(block: position >> object.blockSizeExponent, object, ciphertext, into: plaintext)
      let part = UnsafeRawBufferPointer(rebasing: plaintext[within..<(within + count)])
      UnsafeMutableRawBufferPointer(rebasing: target[done...]).copyMemory(from: part)
      done += count
    }
  }

  private func open(
    block: UInt64, _ object: ObjectReference, _ ciphertext: UnsafeMutableRawBufferPointer,
    into plaintext: UnsafeMutableRawBufferPointer
  ) throws {
    let page = try page(block / VaultFormat.blocksPerPage, of: object)
    try open(
      block..<(block + 1), page, object, cipher.sealer(page: page.index), ciphertext, into: plaintext)
  }

  /// Opens consecutive blocks of one page, reading neighbouring slots with one call.
  func open(
    _ blocks: Range<UInt64>, _ page: MapPage, _ object: ObjectReference, _ sealer: BlockSealer,
    _ ciphertext: UnsafeMutableRawBufferPointer, into plaintext: UnsafeMutableRawBufferPointer
  ) throws {
    guard let file else { throw VaultError.damaged(what: "an object is missing") }
    let blockSize = object.blockSize
    var next = blocks.lowerBound
    while next < blocks.upperBound {
      let target = Int(next - blocks.lowerBound) * blockSize
      guard let found = page.blocks[Int(next % VaultFormat.blocksPerPage)] else {
        UnsafeMutableRawBufferPointer(rebasing: plaintext[target..<(target + blockSize)])
          .initializeMemory(as: UInt8.self, repeating: 0)
        next += 1
        continue
      }
      var run = [found]
      while next + UInt64(run.count) < blocks.upperBound,
        let follower = page.blocks[Int((next + UInt64(run.count)) % VaultFormat.blocksPerPage)],
        follower.slot == found.slot + UInt64(run.count)
      {
        run.append(follower)
      }
      let stored = UnsafeMutableRawBufferPointer(rebasing: ciphertext[..<(run.count * blockSize)])
      guard try file.readFully(at: found.slot << object.blockSizeExponent, into: stored) == stored.count else {
        throw VaultError.damaged(what: "an object is too short")
      }
      for (position, block) in run.enumerated() {
        let source = (position * blockSize)..<((position + 1) * blockSize)
        let range = (target + source.lowerBound)..<(target + source.upperBound)
        do {
          try sealer.open(
            UnsafeRawBufferPointer(rebasing: stored[source]), block: next + UInt64(position), seal: block.seal,
            into: UnsafeMutableRawBufferPointer(rebasing: plaintext[range]))
        } catch {
          throw VaultError.damaged(what: "a block of a file's content")
        }
      }
      next += UInt64(run.count)
    }
  }

  func page(_ index: UInt64, of object: ObjectReference) throws -> MapPage {
    if let known = pages.withLock({ $0.first { $0.index == index } }) { return known }
    let page = try vault.index.read { try $0.mapPage(inode.number, index) }
    guard page.blocks.count == MapPage.capacity(at: index, blockCount: object.blockCount(of: byteCount)) else {
      throw VaultError.damaged(what: "a page of a file's block map")
    }
    pages.withLock { pages in
      if pages.count >= Self.pageLimit { pages.removeFirst() }
      pages.append(page)
    }
    return page
  }
}

extension Vault {
  /// Opens the present version of a file. Throws `notFound` or `isADirectory`.
  public func snapshot(of path: VaultPath) throws(VaultError) -> FileSnapshot {
    try look { session in
      let inode = try session.resolve(path)
      guard inode.kind == .file else { throw VaultError.isADirectory }
      // Pinned before the index's lock is let go, so that no removal comes between.
      return try FileSnapshot(vault: self, inode: inode)
    }
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
