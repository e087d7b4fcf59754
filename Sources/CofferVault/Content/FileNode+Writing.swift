internal import CofferCrypto
internal import CofferSystem
internal import Synchronization

/// Writing. What does not fill a block waits in memory; whole blocks go from the caller's buffer to a free slot.
extension FileNode {
  /// Bytes that a file may have without an object before it joins: then its size tells which block size suits it.
  static let stagedByteCount = 512 << 10
  /// Plaintext of one file that waits in memory.
  static let dirtyByteLimit = 1 << 20
  /// What is sealed at once, or the rest of a page where that is more.
  private static let wholeByteCount = 1 << 20

  /// Writes at `offset`. Where it fails, a part may be written.
  func write(_ source: UnsafeRawBufferPointer, at offset: UInt64) throws {
    try beginWriting(source, at: offset)
    // Also of a part, where it fails.
    defer { tellChange() }
    try writing.withLock { _ in try write(source, from: offset) }
    try relieve()
  }

  /// Writes at `offset`, or at the end where there is none; returns where, and how much: fewer bytes where the file has grown and
  /// the rest failed. So whoever fails has not made it longer, and can try again without having the beginning twice.
  func writeSome(_ source: UnsafeRawBufferPointer, at offset: UInt64?) throws -> (offset: UInt64, count: Int) {
    // What could not be stored after an earlier write, which was told of that one's success.
    if isUnrelieved.load(ordering: .relaxed) { try relieve() }
    try beginWriting(source, at: offset)
    defer { tellChange() }
    let written = try writing.withLock { _ -> (offset: UInt64, count: Int) in
      let end = byteCount
      let start = offset ?? end
      do {
        try write(source, from: start)
        return (start, source.count)
      } catch {
        guard byteCount > max(start, end) else { throw error }
        return (start, Int(byteCount - start))
      }
    }
    try? relieve()
    return written
  }

  /// Lets the content count as changed now.
  func touch() throws {
    // Nobody has to read it anew.
    defer { if !vault.changeObservers.isEmpty { vault.changeObservers.tell([.attributes(of: number)]) } }
    try writing.withLock { _ in
      try requireWritable()
      didChange()
    }
  }

  /// Stores something where too much waits in memory.
  private func relieve() throws {
    isUnrelieved.store(true, ordering: .relaxed)
    try vault.files.relieve(self)
    isUnrelieved.store(false, ordering: .relaxed)
  }

  /// Before the file's lock is taken, which is held for what one call writes, and not for the disk's sake.
  private func beginWriting(_ source: UnsafeRawBufferPointer, at offset: UInt64?) throws {
    try requireRoom(for: source.count, at: offset)
    if dirtyPages >= dirtyPageLimit { try join() }
  }

  /// Under `writing`. A failure half-way leaves what was written until then.
  private func write(_ source: UnsafeRawBufferPointer, from start: UInt64) throws {
    try requireWritable()
    let (end, overflows) = start.addingReportingOverflow(UInt64(source.count))
    guard !overflows, end <= VaultFormat.fileSizeLimit else { throw VaultError.tooLarge }
    if source.isEmpty { return }
    defer { didChange() }
    if object == nil {
      if canStage(from: start, to: end) { return stage(source, at: Int(start)) }
      try moveToObject(sized: max(end, byteCount))
    }
    try writeBlocks(source, at: start)
  }

  /// Throws `full` where what is about to be written does not fit. The object's free slots are its own already, and what goes
  /// into the file's record is a row.
  private func requireRoom(for byteCount: Int, at offset: UInt64?) throws {
    guard byteCount > 0, vault.room.isShort(changing: byteCount) else { return }
    let added = state.withLock { _ -> Int in
      if let object {
        let blocks = (byteCount + object.blockSize - 1) >> object.exponent
        let free = Int(clamping: slots.freeCount) - dirtyBlocks.count
        return free >= blocks ? -1 : (blocks - max(0, free)) << object.exponent
      }
      let end = (offset ?? self.byteCount).addingReportingOverflow(UInt64(byteCount)).partialValue
      return max(self.byteCount, end) <= UInt64(VaultFormat.inlineLimit) ? 0 : byteCount
    }
    if added >= 0 { try vault.requireRoom(for: .content(added)) }
  }

  /// Whether content without an object may grow so far. A gap of more than a block's size shall be a hole.
  func canStage(from start: UInt64, to end: UInt64) -> Bool {
    let staged = vault.files.mayBuffer ? Self.stagedByteCount : VaultFormat.inlineLimit
    let limit = forcedExponent == nil ? staged : VaultFormat.inlineLimit
    return end <= max(UInt64(limit), byteCount) && start <= byteCount + 4096
  }

  private func stage(_ source: UnsafeRawBufferPointer, at start: Int) {
    let before = plain.count
    state.withLock { _ in
      if start + source.count > plain.count { plain.resize(to: start + source.count) }
      plain.write(source, at: start)
      byteCount = UInt64(plain.count)
    }
    vault.files.didBuffer(Self.counted(plain.count) - Self.counted(before))
  }

  /// Gives the content an object; what was in memory waits there in blocks.
  func moveToObject(sized size: UInt64) throws {
    let exponent = exponentOfObject(sized: size)
    let created = try vault.createObject(blockSizeExponent: exponent)
    var blocks: [UInt64: TransferBuffer] = [:]
    let before = plain.count
    var start = 0
    while start < before {
      let count = min(created.blockSize, before - start)
      let buffer = vault.files.buffers.take(exactly: created.blockSize)
      buffer.bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: plain.bytes[start..<(start + count)]))
      UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[count...]).initializeMemory(as: UInt8.self, repeating: 0)
      blocks[UInt64(start) >> exponent] = buffer
      start += count
    }
    objectIsMarked = true
    hasSearchedSlots = true
    state.withLock { _ in
      object = created
      slots = SlotAllocator(SlotUse(reach: 0, used: 0))
      joinedSlotCount = 0
      dirtyBlocks = blocks
      newBlocks = Set(blocks.keys)
      plain = PlainBytes()
    }
    vault.files.didBuffer(blocks.count * created.blockSize - Self.counted(before))
  }

  // MARK: Blocks

  private func writeBlocks(_ source: UnsafeRawBufferPointer, at start: UInt64) throws {
    guard let object else { return }
    var done = 0
    while done < source.count {
      // One call alone has written so much.
      if dirtyPageCount >= 2 * dirtyPageLimit { try joinWhileWriting() }
      let position = start + UInt64(done)
      let block = position >> object.exponent
      let within = Int(position & UInt64(object.blockSize - 1))
      let rest = UnsafeRawBufferPointer(rebasing: source[done...])
      if within == 0, rest.count >= object.blockSize {
        let inPage = Int(VaultFormat.blocksPerPage - block % VaultFormat.blocksPerPage)
        let count = min(rest.count >> object.exponent, max(inPage, Self.wholeByteCount >> object.exponent))
        try storeWhole(UnsafeRawBufferPointer(rebasing: rest[..<(count << object.exponent)]), from: block, object)
        done += count << object.exponent
      } else {
        let count = min(object.blockSize - within, rest.count)
        try writePart(UnsafeRawBufferPointer(rebasing: rest[..<count]), block, at: within, object)
        done += count
      }
    }
  }

  /// Neighbouring blocks of one page that are sealed into neighbouring slots.
  private struct Piece {
    let page: CachedPage
    /// The first of them, counted from the first of all.
    let start: Int
    let slots: Range<UInt64>
  }

  /// Seals consecutive whole blocks into slots, with the help of other threads where they are many. Where it fails, the content
  /// has grown by what was sealed before the first that failed.
  private func storeWhole(_ source: UnsafeRawBufferPointer, from first: UInt64, _ object: ContentObject) throws {
    let count = source.count >> object.exponent
    let pieces = try pieces(of: count, from: first, object)
    nonisolated(unsafe) let (whole, all) = (source, pieces)
    @Sendable func seal(_ number: Int) throws {
      let piece = all[number]
      let range = (piece.start << object.exponent)..<((piece.start + piece.slots.count) << object.exponent)
      try self.seal(
        UnsafeRawBufferPointer(rebasing: whole[range]), from: first + UInt64(piece.start), in: piece.page,
        into: piece.slots, object)
    }
    do {
      if source.count >= Self.parallelByteCount {
        try Workers.each(pieces.count) { try seal($0) }
      } else {
        for number in pieces.indices {
          do {
            try seal(number)
          } catch {
            state.withLock { _ in for piece in pieces[(number + 1)...] { slots.giveBack(piece.slots) } }
            throw error
          }
        }
      }
    } catch {
      state.withLock { _ in keepBeginning(of: pieces, from: first, object) }
      throw error
    }
    state.withLock { _ in byteCount = max(byteCount, (first + UInt64(count)) << object.exponent) }
  }

  /// Slots for `count` blocks, and the pages that will name them.
  private func pieces(of count: Int, from first: UInt64, _ object: ContentObject) throws -> [Piece] {
    let isParallel = count << object.exponent >= Self.parallelByteCount
    let inPiece = isParallel ? max(1, Self.pieceByteCount >> object.exponent) : count
    var pieces: [Piece] = []
    var done = 0
    do {
      while done < count {
        let block = first + UInt64(done)
        let inPage = Int(VaultFormat.blocksPerPage - block % VaultFormat.blocksPerPage)
        let page = try writablePage(block / VaultFormat.blocksPerPage)
        let taken = state.withLock { _ in slots.take(upTo: UInt64(min(count - done, inPage, inPiece))) }
        placedByteCount += UInt64(taken.count) << object.exponent
        pieces.append(Piece(page: page, start: done, slots: taken))
        done += taken.count
      }
    } catch {
      state.withLock { _ in for piece in pieces { slots.giveBack(piece.slots) } }
      throw error
    }
    return pieces
  }

  /// Some pieces were not sealed, or not to their ends. Under `state`.
  private func keepBeginning(of pieces: [Piece], from first: UInt64, _ object: ContentObject) {
    func isSealed(_ piece: Piece, _ offset: Int) -> Bool {
      let block = first + UInt64(piece.start + offset)
      return piece.page.blocks[Int(block % VaultFormat.blocksPerPage)]?.slot == piece.slots.lowerBound + UInt64(offset)
    }
    var sealed = 0
    for piece in pieces {
      let count = (0..<piece.slots.count).first { !isSealed(piece, $0) } ?? piece.slots.count
      sealed += count
      if count < piece.slots.count { break }
    }
    if sealed > 0 { byteCount = max(byteCount, (first + UInt64(sealed)) << object.exponent) }
    // Behind the end there are no blocks.
    for piece in pieces {
      for offset in 0..<piece.slots.count where isSealed(piece, offset) {
        let block = first + UInt64(piece.start + offset)
        if block << object.exponent >= byteCount { replace(block, in: piece.page, with: nil) }
      }
    }
  }

  /// Slots that no block came to lie in are free again where it throws.
  private func seal(
    _ source: UnsafeRawBufferPointer, from first: UInt64, in page: CachedPage, into taken: Range<UInt64>,
    _ object: ContentObject
  ) throws {
    let cipher = try presentCipher()
    let sealer = state.withLock { _ in page.sealer(cipher) }
    let blockSize = object.blockSize
    var done = 0
    do {
      while done < taken.count {
        let slot = taken.lowerBound + UInt64(done)
        let part = slot..<min(slot + UInt64(Self.blocksAtOnce(object)), taken.upperBound)
        let seals = try place(in: part, object, sealer, from: first + UInt64(done)) { position in
          let range = ((done + position) * blockSize)..<((done + position + 1) * blockSize)
          return UnsafeRawBufferPointer(rebasing: source[range])
        }
        state.withLock { _ in
          for (position, seal) in seals.enumerated() {
            let block = first + UInt64(done + position)
            replace(block, in: page, with: MapPage.Block(slot: slot + UInt64(position), seal: seal))
            if !dirtyBlocks.isEmpty { dropDirty(block, object) }
          }
        }
        done += seals.count
      }
    } catch {
      state.withLock { _ in slots.giveBack((taken.lowerBound + UInt64(done))..<taken.upperBound) }
      throw error
    }
  }

  /// Seals blocks that follow one another into neighbouring slots with one write; returns the seals.
  private func place(
    in taken: Range<UInt64>, _ object: ContentObject, _ sealer: BlockSealer, from first: UInt64,
    plaintext: (Int) -> UnsafeRawBufferPointer
  ) throws -> [BlockSeal] {
    let blockSize = object.blockSize
    return try vault.files.buffers.withCiphertext(taken.count * blockSize) { ciphertext in
      let seals = try sealer.seal(taken.count, from: first) { position in
        let range = (position * blockSize)..<((position + 1) * blockSize)
        return (plaintext(position), UnsafeMutableRawBufferPointer(rebasing: ciphertext[range]))
      }
      try object.file.writeAll(UnsafeRawBufferPointer(ciphertext), at: taken.lowerBound << object.exponent)
      return seals
    }
  }

  /// Changes a part of a block in memory.
  func writePart(
    _ source: UnsafeRawBufferPointer, _ block: UInt64, at within: Int, _ object: ContentObject
  ) throws {
    let end = block << object.exponent + UInt64(within + source.count)
    func copy(into buffer: TransferBuffer) {
      UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[within..<(within + source.count)]).copyMemory(from: source)
      byteCount = max(byteCount, end)
    }
    let isDone = state.withLock { _ in
      guard let dirty = dirtyBlocks[block] else { return false }
      copy(into: dirty)
      return true
    }
    if isDone { return }
    if (dirtyBlocks.count + 1) << object.exponent > Self.dirtyByteLimit { try flush() }
    let buffer = vault.files.buffers.take(exactly: object.blockSize)
    let start = block << object.exponent
    let known = start < byteCount ? try readContent(at: start, into: buffer.bytes) : 0
    UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[known...]).initializeMemory(as: UInt8.self, repeating: 0)
    let page = try loadPage(block / VaultFormat.blocksPerPage)
    state.withLock { _ in
      dirtyBlocks[block] = buffer
      if page.blocks[Int(block % VaultFormat.blocksPerPage)] == nil { newBlocks.insert(block) }
      copy(into: buffer)
    }
    vault.files.didBuffer(object.blockSize)
  }

  /// Under `state`.
  func dropDirty(_ block: UInt64, _ object: ContentObject) {
    newBlocks.remove(block)
    guard let buffer = dirtyBlocks.removeValue(forKey: block) else { return }
    vault.files.didBuffer(-object.blockSize)
    overwrite(buffer.bytes)
    vault.files.buffers.give(buffer)
  }

  /// Seals all dirty blocks into slots. Where it fails, those that are left stay dirty.
  func flush() throws {
    do {
      try flushBlocks()
    } catch {
      // A file that was cut can always be stored: what it gives back is more than the blocks at its new end.
      guard VaultError.wrapping(error) == .full, givesMoreThanItTakes, vault.ballast.lend() else { throw error }
      defer { vault.ballast.takeBack() }
      try flushBlocks()
    }
  }

  /// What waits takes fewer slots than the last join's content had, and the present one has no more.
  private var givesMoreThanItTakes: Bool {
    state.withLock { _ in
      joinedSlotCount >= slots.used + UInt64(newBlocks.count) + UInt64(dirtyBlocks.count + sealedBlocks.count)
    }
  }

  private func flushBlocks() throws {
    if !sealedBlocks.isEmpty { try placeSealedBlocks() }
    guard let object, !dirtyBlocks.isEmpty else { return }
    let cipher = try presentCipher()
    let blocks = state.withLock { _ in dirtyBlocks.keys.sorted() }
    var done = 0
    while done < blocks.count {
      let first = blocks[done]
      let index = first / VaultFormat.blocksPerPage
      var wanted = 1
      while wanted < Self.blocksAtOnce(object), done + wanted < blocks.count,
        blocks[done + wanted] == first + UInt64(wanted), blocks[done + wanted] / VaultFormat.blocksPerPage == index
      {
        wanted += 1
      }
      let page = try writablePage(index, placing: wanted << object.exponent)
      let (taken, sealer) = state.withLock { _ in (slots.take(upTo: UInt64(wanted)), page.sealer(cipher)) }
      let seals: [BlockSeal]
      do {
        seals = try place(in: taken, object, sealer, from: first) { position in
          // Writers alone change dirty blocks, and this is the writer.
          let bytes = dirtyBlocks[first + UInt64(position)].map { UnsafeRawBufferPointer($0.bytes) }
          return bytes ?? UnsafeRawBufferPointer(start: nil, count: 0)
        }
      } catch {
        state.withLock { _ in slots.giveBack(taken) }
        throw error
      }
      state.withLock { _ in
        for (position, seal) in seals.enumerated() {
          let block = first + UInt64(position)
          replace(block, in: page, with: MapPage.Block(slot: taken.lowerBound + UInt64(position), seal: seal))
          dropDirty(block, object)
        }
      }
      done += taken.count
    }
  }

  /// A page to be changed, with the file's free slots known. Under `writing`.
  ///
  /// - Parameter byteCount: of blocks that are about to be written to the object.
  func writablePage(_ index: UInt64, placing byteCount: Int = 0) throws -> CachedPage {
    needsSync = true
    placedByteCount += UInt64(byteCount)
    noteChange()
    if !hasSearchedSlots { searchSlots() }
    return try loadPageForChange(index)
  }

  /// The page cannot be given up between its load and its change: it is dirty from here on.
  func loadPageForChange(_ index: UInt64) throws -> CachedPage {
    while true {
      let page = try loadPage(index)
      let isHeld = state.withLock { _ in
        guard pages[index] === page else { return false }
        markDirty(page)
        return true
      }
      if isHeld { return page }
    }
  }

  // MARK: Free slots

  /// Bytes whose pages are read at most to find a file's unused slots.
  private static let searchedByteCount: UInt64 = 1 << 30

  /// Finds the slots below the reach that no block lies in, once, before the first block is written; in a file with many
  /// pages, or a damaged one, writing goes on above the reach instead.
  private func searchSlots() {
    hasSearchedSlots = true
    guard let object, slots.hasUnknown, slots.reach <= 1 << 20 else { return }
    let pageLimit = (Self.searchedByteCount >> object.exponent) / VaultFormat.blocksPerPage
    // More than as many pages hold.
    if slots.used > pageLimit * VaultFormat.blocksPerPage { return }
    let pageCount = MapPage.pageCount(blockCount: object.reference.blockCount(of: byteCount))
    var taken: [UInt64] = []
    var count: UInt64 = 0
    do {
      try forEachPage(in: 0..<pageCount) { page in
        count += 1
        state.withLock { _ in for block in page.blocks { if let block { taken.append(block.slot) } } }
        return count <= pageLimit
      }
    } catch {
      return
    }
    guard count <= pageLimit else { return }
    taken.sort()
    var ranges: [Range<UInt64>] = []
    var next: UInt64 = 0
    for slot in taken {
      if slot > next { ranges.append(next..<slot) }
      next = slot + 1
    }
    if next < slots.reach { ranges.append(next..<slots.reach) }
    state.withLock { _ in slots.didFind(ranges.reversed()) }
  }
}
