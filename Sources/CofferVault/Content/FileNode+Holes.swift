internal import CofferSystem
internal import Synchronization

/// Cutting, holes, and the search for them. Time and memory follow what is stored, not how large the file is.
extension FileNode {
  /// Sets the size. New bytes are a hole. A cut of very many map pages joins on the way, each time as a shorter file.
  ///
  /// - Parameter isCutting: a file that is longer is cut; else it stays as it is.
  func truncate(to newCount: UInt64, isCutting: Bool = true) throws {
    defer { tellChange() }
    try writing.withLock { _ in
      try requireWritable()
      if !isCutting, newCount <= byteCount { return }
      guard newCount <= VaultFormat.fileSizeLimit else { throw VaultError.tooLarge }
      defer { didChange() }
      if object == nil {
        if newCount <= byteCount || canStage(from: newCount, to: newCount) {
          let before = plain.count
          state.withLock { _ in
            plain.resize(to: Int(newCount))
            byteCount = newCount
          }
          vault.files.didBuffer(Self.counted(plain.count) - Self.counted(before))
          return
        }
        try moveToObject(sized: newCount)
      }
      if newCount >= byteCount {
        state.withLock { _ in byteCount = newCount }
      } else {
        try cut(to: newCount)
        if newCount <= UInt64(VaultFormat.inlineLimit) { try leaveObject() }
      }
    }
    try vault.files.relieve(self)
  }

  private func cut(to newCount: UInt64) throws {
    guard let object else { return }
    let blockCount = object.reference.blockCount(of: newCount)
    if newCount < blockCount << object.exponent {
      try zero(newCount..<min(byteCount, blockCount << object.exponent), object)
    }
    let pageCount = MapPage.pageCount(blockCount: object.reference.blockCount(of: byteCount))
    try forEachPage(in: (blockCount / VaultFormat.blocksPerPage)..<pageCount, descending: true) { found in
      if dirtyPageCount >= dirtyPageLimit { try joinWhileWriting() }
      let page = try writablePage(found.index)
      let first = page.index * VaultFormat.blocksPerPage
      let from = max(first, blockCount)
      state.withLock { _ in
        // Shorter first: a block behind the end is nobody's.
        byteCount = min(byteCount, max(newCount, from << object.exponent))
        for block in from..<(first + VaultFormat.blocksPerPage) {
          dropDirty(block, object)
          replace(block, in: page, with: nil)
        }
      }
      return true
    }
    state.withLock { _ in byteCount = newCount }
  }

  /// Takes a file that fits into its record out of its object, unless a snapshot reads there.
  private func leaveObject() throws {
    guard let object, retired.count < 4, state.withLock({ _ in pins.isEmpty }) else { return }
    var bytes = PlainBytes()
    bytes.resize(to: Int(byteCount))
    if byteCount > 0 {
      try vault.files.buffers.withPlaintext(Int(byteCount)) { buffer in
        _ = try readContent(at: 0, into: buffer)
        bytes.write(UnsafeRawBufferPointer(buffer), at: 0)
      }
    }
    let page = try writablePage(0)
    let gone = state.withLock { _ -> ContentObject? in
      // A snapshot takes `writing` before it pins, so that none came since.
      for block in dirtyBlocks.keys { dropDirty(block, object) }
      newBlocks = []
      for block in 0..<VaultFormat.blocksPerPage { replace(block, in: page, with: nil) }
      self.object = nil
      slots = SlotAllocator(SlotUse(reach: 0, used: 0))
      joinedSlotCount = 0
      // Nothing is left under an earlier key.
      cipher = cipher?.rekeyed(upTo: nil)
      protectedKey.rekeying = nil
      swap(&plain, &bytes)
      return object
    }
    if let gone { retired.append((gone.reference, objectIsMarked)) }
    objectIsMarked = false
    needsSync = false
  }

  /// Makes a range a hole, as far as it covers whole blocks; the rest of it is written with zeros. The size stays.
  func punchHole(_ range: Range<UInt64>) throws {
    defer { tellChange() }
    try writing.withLock { _ in
      try requireWritable()
      let range = range.clamped(to: 0..<byteCount)
      guard !range.isEmpty else { return }
      defer { didChange() }
      if object == nil, byteCount > UInt64(VaultFormat.inlineLimit) { try moveToObject(sized: byteCount) }
      guard let object else {
        return state.withLock { _ in plain.zero(Int(range.lowerBound)..<Int(range.upperBound)) }
      }
      let size = UInt64(object.blockSize)
      let first = (range.lowerBound + size - 1) / size
      // What is behind the end is zero already.
      let last = range.upperBound == byteCount ? object.reference.blockCount(of: byteCount) : range.upperBound / size
      if first >= last {
        // Within one block, or over the border of two.
        let border = min(max(first * size, range.lowerBound), range.upperBound)
        try zero(range.lowerBound..<border, object)
        return try zero(border..<range.upperBound, object)
      }
      try zero(range.lowerBound..<(first * size), object)
      if last * size < range.upperBound { try zero((last * size)..<range.upperBound, object) }
      try release(first..<last, object)
    }
    try vault.files.relieve(self)
  }

  private func release(_ blocks: Range<UInt64>, _ object: ContentObject) throws {
    let pages = (blocks.lowerBound / VaultFormat.blocksPerPage)..<MapPage.pageCount(blockCount: blocks.upperBound)
    try forEachPage(in: pages) { found in
      if dirtyPageCount >= dirtyPageLimit { try joinWhileWriting() }
      let page = try writablePage(found.index)
      let first = page.index * VaultFormat.blocksPerPage
      state.withLock { _ in
        for block in blocks.clamped(to: first..<(first + VaultFormat.blocksPerPage)) {
          dropDirty(block, object)
          replace(block, in: page, with: nil)
        }
      }
      return true
    }
  }

  /// Writes zeros into a part of one block, unless it is a hole. Under `writing`.
  private func zero(_ range: Range<UInt64>, _ object: ContentObject) throws {
    guard !range.isEmpty else { return }
    let block = range.lowerBound >> object.exponent
    let page = try loadPage(block / VaultFormat.blocksPerPage)
    let isHole = state.withLock { _ in
      dirtyBlocks[block] == nil && page.blocks[Int(block % VaultFormat.blocksPerPage)] == nil
    }
    if isHole { return }
    try vault.files.buffers.withPlaintext(range.count) { zeros in
      zeros.initializeMemory(as: UInt8.self, repeating: 0)
      try writePart(
        UnsafeRawBufferPointer(zeros), block, at: Int(range.lowerBound & UInt64(object.blockSize - 1)), object)
    }
  }

  // MARK: Search

  /// The first byte at or behind `offset` that is no hole.
  func nextData(from offset: UInt64) throws -> UInt64? {
    let (end, object) = state.withLock { _ in (byteCount, self.object) }
    guard offset < end else { return nil }
    guard let object else { return offset }
    let start = offset >> object.exponent
    var found: UInt64?
    let pageCount = MapPage.pageCount(blockCount: object.reference.blockCount(of: end))
    try forEachPage(in: (start / VaultFormat.blocksPerPage)..<pageCount) { page in
      found = state.withLock { _ in
        let first = page.index * VaultFormat.blocksPerPage
        return (max(first, start)..<(first + VaultFormat.blocksPerPage)).first { isData($0, in: page) }
      }
      return found == nil
    }
    guard let found else { return nil }
    let position = max(offset, found << object.exponent)
    return position < end ? position : nil
  }

  /// The first byte at or behind `offset` that lies in a hole; the end of the file is one.
  func nextHole(from offset: UInt64) throws -> UInt64 {
    let (end, object) = state.withLock { _ in (byteCount, self.object) }
    guard offset < end, let object else { return end }
    var block = offset >> object.exponent
    let blockCount = object.reference.blockCount(of: end)
    while block < blockCount {
      let page = try loadPage(block / VaultFormat.blocksPerPage)
      let behind = (page.index + 1) * VaultFormat.blocksPerPage
      let found = state.withLock { _ in (block..<behind).first { !isData($0, in: page) } }
      if let found { return min(end, max(offset, found << object.exponent)) }
      block = behind
    }
    return end
  }

  /// Under `state`.
  private func isData(_ block: UInt64, in page: CachedPage) -> Bool {
    page.blocks[Int(block % VaultFormat.blocksPerPage)] != nil || dirtyBlocks[block] != nil
      || sealedBlocks[block] != nil
  }
}
