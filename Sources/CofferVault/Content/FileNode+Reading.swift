internal import CofferCrypto
internal import CofferSystem
internal import Synchronization

/// Reading: the map is asked under `state`, and blocks are read and opened outside it, so that readers run side by side
/// and beside a writer.
extension FileNode {
  /// Bytes of neighbouring slots that are read or written with one call, unless a block is larger.
  private static let runByteCount = 256 << 10

  static func blocksAtOnce(_ object: ContentObject) -> Int { max(1, runByteCount >> object.exponent) }

  /// From here on a transfer is worth a second thread.
  static let parallelByteCount = 512 << 10
  /// What a thread then takes at a time.
  static let pieceByteCount = 128 << 10

  /// Blocks that lie side by side in the object, as the map had them at one moment.
  private struct StoredRun {
    let object: ContentObject
    let sealer: BlockSealer
    let first: UInt64
    let count: Int
    /// The page's blocks at that moment, and where `first` stands there.
    let blocks: MapEntries
    let position: Int

    subscript(offset: Int) -> MapPage.Block? { blocks[position + offset] }

    func seal(_ offset: Int) -> BlockSeal {
      guard let block = self[offset] else { preconditionFailure("a run has no hole") }
      return block.seal
    }
  }

  private enum Located {
    /// So many bytes were copied, or are zero.
    case copied(Int)
    case stored(StoredRun)
    case unknownPage(UInt64)
  }

  /// Reads at `offset` until `buffer` is full or the content ends, behind which `buffer` may change up to the end of a block;
  /// where it throws, `buffer` holds zeros. A lock waits until it is done.
  func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer, of pin: ContentPin? = nil) throws -> Int {
    try reading { try readContent(at: offset, into: buffer, of: pin) }
  }

  /// As `read`, for whoever keeps the key from going.
  func readContent(
    at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer, of pin: ContentPin? = nil
  ) throws -> Int {
    let (byteCount, blockSize) = state.withLock { _ in (self.byteCount, object?.blockSize ?? 0) }
    let end = pin?.byteCount ?? byteCount
    guard offset < end, !buffer.isEmpty else { return 0 }
    let count = Int(min(UInt64(buffer.count), end - offset))
    // The last block is opened in its place, where there is room for the whole of it.
    let behind = blockSize == 0 ? 0 : -(Int(offset & UInt64(blockSize - 1)) + count) & (blockSize - 1)
    let target = UnsafeMutableRawBufferPointer(
      rebasing: buffer[..<(behind <= buffer.count - count ? count + behind : count)])
    do {
      if target.count >= Self.parallelByteCount {
        // Cut between blocks: one that two threads read a part of is opened twice.
        let (size, end) = (UInt64(max(Self.pieceByteCount, blockSize)), offset + UInt64(target.count))
        let pieces = (offset / size)..<((end + size - 1) / size)
        nonisolated(unsafe) let (pinned, whole) = (pin, target)
        try Workers.each(pieces.count) { number in
          let piece = pieces.lowerBound + UInt64(number)
          let lower = max(offset, piece * size)
          let upper = min(end, (piece + 1) * size)
          let range = Int(lower - offset)..<Int(upper - offset)
          try self.fill(UnsafeMutableRawBufferPointer(rebasing: whole[range]), from: lower, pinned)
        }
      } else {
        try fill(target, from: offset, pin)
      }
    } catch {
      target.initializeMemory(as: UInt8.self, repeating: 0)
      throw error
    }
    return count
  }

  private func fill(_ target: UnsafeMutableRawBufferPointer, from offset: UInt64, _ pin: ContentPin?) throws {
    var done = 0
    while done < target.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: target[done...])
      switch try locate(offset + UInt64(done), into: rest, pin) {
      case .copied(let count): done += count
      case .unknownPage(let index): _ = try loadPage(index)
      case .stored(let run): done += try open(run, at: offset + UInt64(done), into: rest, pin)
      }
    }
  }

  /// Copies what is in memory at `offset`, or says where it is stored.
  private func locate(
    _ offset: UInt64, into target: UnsafeMutableRawBufferPointer, _ pin: ContentPin?
  ) throws -> Located {
    try state.withLock { _ in
      // Not the one that the reader came with: the key may be changing.
      guard let cipher else { throw VaultError.locked }
      guard let object else { return .copied(copyPlain(offset, into: target)) }
      let block = offset >> object.exponent
      let within = Int(offset & UInt64(object.blockSize - 1))
      let room = min(object.blockSize - within, target.count)
      if pin == nil, let dirty = dirtyBlocks[block] {
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: dirty.bytes[within..<(within + room)]))
        return .copied(room)
      }
      let index = block / VaultFormat.blocksPerPage
      guard let page = knownPage(index) else { return .unknownPage(index) }
      guard let first = entry(block, in: page, pin) else {
        UnsafeMutableRawBufferPointer(rebasing: target[..<room]).initializeMemory(as: UInt8.self, repeating: 0)
        return .copied(room)
      }
      let position = Int(block % VaultFormat.blocksPerPage)
      if let pin, pins.last !== pin || !pin.earlier.isEmpty {
        return .stored(
          StoredRun(
            object: object, sealer: page.sealer(cipher), first: block, count: 1, blocks: [first], position: 0))
      }
      let wanted = (within + target.count + object.blockSize - 1) >> object.exponent
      let limit = min(
        wanted, Self.blocksAtOnce(object), Int(VaultFormat.blocksPerPage) - position)
      var count = 1
      while count < limit, let next = page.blocks[position + count], next.slot == first.slot + UInt64(count),
        pin != nil || dirtyBlocks.isEmpty || dirtyBlocks[block + UInt64(count)] == nil
      {
        count += 1
      }
      return .stored(
        StoredRun(
          object: object, sealer: page.sealer(cipher), first: block, count: count, blocks: page.blocks,
          position: position))
    }
  }

  /// Where a block lies in the version of `pin`, or now. Under `state`.
  private func entry(_ block: UInt64, in page: CachedPage, _ pin: ContentPin?) -> MapPage.Block? {
    if let pin, let start = pins.firstIndex(where: { $0 === pin }) {
      for newer in pins[start...] {
        if let earlier = newer.earlier[block] { return earlier.block }
      }
    }
    return page.blocks[Int(block % VaultFormat.blocksPerPage)]
  }

  /// Under `state`. What is behind the end, because it was cut meanwhile, is zero.
  private func copyPlain(_ offset: UInt64, into target: UnsafeMutableRawBufferPointer) -> Int {
    let start = Int(min(offset, UInt64(plain.count)))
    let count = min(plain.count - start, target.count)
    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: plain.bytes[start..<(start + count)]))
    UnsafeMutableRawBufferPointer(rebasing: target[count...]).initializeMemory(as: UInt8.self, repeating: 0)
    return target.count
  }

  /// Reads and opens a run into `target`, which stands for the content from `offset` on; returns how many bytes of it
  /// are done.
  private func open(
    _ run: StoredRun, at offset: UInt64, into target: UnsafeMutableRawBufferPointer, _ pin: ContentPin?
  ) throws -> Int {
    let blockSize = run.object.blockSize
    let within = Int(offset & UInt64(blockSize - 1))
    let whole = within == 0 ? min(run.count, target.count >> run.object.exponent) : 0
    if whole > 0 {
      let part = UnsafeMutableRawBufferPointer(rebasing: target[..<(whole << run.object.exponent)])
      return try open(run, into: part, pin) << run.object.exponent
    }
    // A part of a block, at the start of what is wanted or at its end.
    let count = min(blockSize - within, target.count)
    return try vault.files.buffers.withPlaintext(blockSize) { block in
      guard try open(run, into: block, pin) == 1 else { return 0 }
      UnsafeMutableRawBufferPointer(rebasing: target[..<count])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: block[within..<(within + count)]))
      return count
    }
  }

  /// Reads the blocks at the start of a run into `target`, which has room for whole ones, and opens them in place; returns how
  /// many it is done with.
  private func open(
    _ run: StoredRun, into target: UnsafeMutableRawBufferPointer, _ pin: ContentPin?
  ) throws -> Int {
    guard let slot = run[0]?.slot else { return 0 }
    let (blockSize, exponent) = (run.object.blockSize, run.object.exponent)
    let found = try run.object.file.readFully(at: slot << exponent, into: target) >> exponent
    let opened = try run.sealer.open(found, from: run.first) { position in
      let block = UnsafeMutableRawBufferPointer(rebasing: target[(position * blockSize)..<((position + 1) * blockSize)])
      return (UnsafeRawBufferPointer(block), run.seal(position), block)
    }
    if opened < target.count >> exponent { try requireMoved(run, opened, pin) }
    return opened
  }

  /// A writer may have moved the block, and its old slot may have been used again: then the map says so, and the block
  /// is sought once more. Throws `damaged` where the map still names what was tried.
  private func requireMoved(_ run: StoredRun, _ position: Int, _ pin: ContentPin?) throws {
    let block = run.first + UInt64(position)
    let index = block / VaultFormat.blocksPerPage
    // The page may have been given up meanwhile.
    _ = try loadPage(index)
    let isSame = state.withLock { _ in
      guard object === run.object, let page = pages[index] else { return false }
      return entry(block, in: page, pin) == run[position]
    }
    if isSame { throw VaultError.damaged(what: "a block of a file's content") }
  }
}
