internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// Seals a source's blocks into an object on several threads, and collects the map pages.
///
/// Memory is bounded by two buffers a thread and `pageLimit` pages: when more are complete, the object is synced and
/// they join the open transaction. The file is marked for removal until it is linked, so a crash before leaves nothing.
final class ObjectWriter: Sendable {
  private static let pageLimit = 128

  private let vault: Vault
  private let inode: InodeNumber
  private let object: ObjectReference
  private let file: OwnedDescriptor
  private let cipher: HeldCipher
  private let runs: BlockRuns
  private let state = Mutex(State())

  private struct State {
    var pages: [UInt64: MapPage] = [:]
    var filled: [UInt64: Int] = [:]
  }

  init(vault: Vault, inode: InodeNumber, object: ObjectReference, file: OwnedDescriptor, cipher: HeldCipher) {
    self.vault = vault
    self.inode = inode
    self.object = object
    self.file = file
    self.cipher = cipher
    runs = BlockRuns(blockSizeExponent: object.blockSizeExponent)
  }

  /// Writes and syncs the whole source; returns its size in bytes.
  func write(_ source: ImportSource, start: SourceStart, control: TransferControl) throws -> UInt64 {
    let reader = SourceReader(source, start: start, runs: runs, control: control)
    let workers = Workers()
    try workers.run {
      let plaintext = TransferBuffer(count: runs.byteCount)
      let ciphertext = TransferBuffer(count: runs.byteCount)
      while !workers.isStopped {
        if control.isCancelled() { throw VaultError.cancelled }
        guard let (run, count) = try reader.next(into: plaintext.bytes) else { return }
        try seal(run, plaintext.bytes, count, ciphertext.bytes)
        control.progress(count)
        try joinCompletePages()
      }
    }
    // The end of a stream may come from the same Control-C: what was read then is not the whole.
    if control.isCancelled() { throw VaultError.cancelled }
    let byteCount = try reader.finish()
    try file.syncData()
    return byteCount
  }

  /// Seals one run of blocks and writes it with one call.
  private func seal(
    _ run: UInt64, _ plaintext: UnsafeMutableRawBufferPointer, _ count: Int,
    _ ciphertext: UnsafeMutableRawBufferPointer
  ) throws {
    let blockSize = runs.blockSize
    let blockCount = (count + blockSize - 1) / blockSize
    // The last block is sealed with zeros behind its end.
    let padded = blockCount * blockSize
    UnsafeMutableRawBufferPointer(rebasing: plaintext[count..<padded]).initializeMemory(as: UInt8.self, repeating: 0)
    let first = runs.firstBlock(of: run)
    let page = runs.page(of: run)
    let blocks = try cipher.use { cipher in
      let seals = try cipher.sealer(page: page).seal(blockCount, from: first) { position in
        let range = (position * blockSize)..<((position + 1) * blockSize)
        return (
          UnsafeRawBufferPointer(rebasing: plaintext[range]), UnsafeMutableRawBufferPointer(rebasing: ciphertext[range])
        )
      }
      return seals.enumerated().map { MapPage.Block(slot: first + UInt64($0.offset), seal: $0.element) }
    }
    try file.writeAll(UnsafeRawBufferPointer(rebasing: ciphertext[..<padded]), at: first << object.blockSizeExponent)
    let offset = Int(first % VaultFormat.blocksPerPage)
    state.withLock { state in
      var target = state.pages.removeValue(forKey: page) ?? MapPage(inode: inode, index: page, blocks: [])
      if target.blocks.count < offset + blockCount { target.blocks.resize(to: offset + blockCount) }
      for (position, block) in blocks.enumerated() { target.blocks[offset + position] = block }
      state.pages[page] = target
      state.filled[page, default: 0] += blockCount
    }
  }

  /// Hands complete pages to the index when many have gathered.
  private func joinCompletePages() throws {
    let complete = state.withLock { state -> [MapPage] in
      guard state.pages.count > Self.pageLimit else { return [] }
      let complete = state.filled.filter { $0.value == Int(VaultFormat.blocksPerPage) }.keys
      let pages = complete.compactMap { state.pages.removeValue(forKey: $0) }
      for page in complete { state.filled[page] = nil }
      return pages
    }
    guard !complete.isEmpty else { return }
    try file.syncData()
    try vault.perform { session in try session.store(complete, removing: [], of: self.inode) }
  }

  /// The pages that have not joined yet; called in the operation that links the file.
  func storeRemainingPages(_ session: IndexSession) throws {
    let pages = state.withLock { $0.pages }
    try session.store(pages.values.sorted { $0.index < $1.index }, removing: [], of: inode)
  }
}
