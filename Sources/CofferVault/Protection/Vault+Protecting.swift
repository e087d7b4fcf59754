internal import CofferCrypto
public import CofferFiles
internal import CofferSystem
internal import Synchronization

/// Changing protection classes.
extension Vault {
  /// Gives what is at `path` a protection class. A folder's is that of files that are made in it from now on.
  ///
  /// A file that gets a stricter class gets a new key, and its whole content is sealed anew, so that a copy of its old
  /// record opens nothing: in steps, each as durable as any change, in constant memory. Where it is interrupted, the file
  /// can be used as before, and the next call goes on, also one for another class. A file that gets a weaker class keeps its key.
  ///
  /// Throws `locked` where the file's present class or the new one does not allow it now, and `busy` while the file is
  /// being read as a whole.
  public func protect(
    _ path: VaultPath, as protection: ProtectionClass, control: TransferControl = TransferControl()
  ) throws(VaultError) {
    try protect(protection, control) { try $0.resolve(path) }
  }

  /// As above, by the file's number.
  public func protect(
    _ number: InodeNumber, as protection: ProtectionClass, control: TransferControl = TransferControl()
  ) throws(VaultError) {
    try protect(protection, control) { try $0.node(number) }
  }

  private func protect(
    _ protection: ProtectionClass, _ control: TransferControl, _ find: (IndexSession) throws -> Inode
  ) throws(VaultError) {
    let inode = try look(find)
    switch inode.kind {
    case .directory:
      try change { session in
        var folder = try session.folder(inode.number)
        folder.protection = protection
        folder.changed = self.time.now()
        try session.store(folder)
        session.note(.attributes(of: folder.number))
      }
    case .file: try VaultError.catching { try protectFile(inode.number, as: protection, control) }
    case .symbolicLink, .fifo, .socket: throw .wrongKind
    }
  }

  private func protectFile(
    _ number: InodeNumber, as protection: ProtectionClass, _ control: TransferControl
  ) throws {
    guard !isReadOnly else { throw VaultError.olderThanAnchor }
    let node = try look { session in try self.node(of: session.node(number)) }
    defer { files.release(node, in: self) }
    // A change that was interrupted is ended first, whatever class it was to; then this one begins, and has its pages.
    repeat { try rekey(node, control) } while try !node.protect(as: protection)
    try rekey(node, control)
    try commit()
  }

  private func rekey(_ node: FileNode, _ control: TransferControl) throws {
    while try node.rekeyPages() {
      if control.isCancelled() { throw VaultError.cancelled }
      control.progress(Int(VaultFormat.blocksPerPage) << (node.state.withLock { _ in node.object?.exponent } ?? 0))
    }
  }
}

extension ProtectionClass {
  /// Whether files of this class can be read on fewer occasions than those of `other`.
  func isStricter(than other: ProtectionClass) -> Bool { rawValue < other.rawValue }
}

extension FileNode {
  /// Pages that are sealed anew before they join.
  private static let pagesInStep = 64

  /// Wraps the file's key for another class; where that is stricter, begins with a new key. Small content is sealed under
  /// it at once, pages follow with `rekeyPages`. `false` where an earlier change is not at its end.
  func protect(as protection: ProtectionClass) throws -> Bool {
    // Where the vault has been locked meanwhile, whoever keeps the content forgets it as they did that of other files then.
    defer { tellChange() }
    return try writing.withLock { _ -> Bool in
      try requireWritable()
      let (known, isPinned) = state.withLock { _ in (protectedKey, hasVersions) }
      if known.protection == protection { return true }
      if known.rekeying != nil { return false }
      // What is in memory has its place before the key changes.
      try joinWhileWriting()
      let cipher = try presentCipher()
      guard protection.isStricter(than: known.protection) else {
        let wrapped = try vault.keys.wrap(cipher.key, for: protection)
        try change(to: ProtectedKey(protection: protection, wrapped: wrapped, commitment: known.commitment), cipher)
        return true
      }
      guard !isPinned else { throw VaultError.busy }
      let key = SecretKey()
      var new = ProtectedKey(
        protection: protection, wrapped: try vault.keys.wrap(key, for: protection), commitment: key.commitment)
      var newCipher = FileCipher(key: key, vault: vault.id, inode: number)
      if object != nil {
        new.rekeying = Rekeying(
          wrappedKey: try vault.keys.wrap(cipher.key, for: protection), keyCommitment: known.commitment, nextPage: 0)
        newCipher = newCipher.with(earlier: cipher.key, from: 0)
      }
      try change(to: new, newCipher)
      return true
    }
  }

  private func change(to new: ProtectedKey, _ cipher: FileCipher) throws {
    let sealed = object == nil ? try cipher.sealInline(plain.bytes) : nil
    try vault.perform { session in
      if self.isGone.load(ordering: .acquiring) { throw VaultError.notFound }
      var inode = try session.inode(self.number)
      new.store(in: &inode)
      inode.changed = self.vault.time.now()
      if let sealed { inode.content = .inline(sealed) }
      // A deposit that gets a class by hand keeps it.
      try session.removeDeposit(self.number)
      try session.store(inode)
    }
    state.withLock { _ in
      protectedKey = new
      self.cipher = cipher
      for page in pages.values { page.forgetSealer() }
    }
    dropKeyIfGone()
  }

  /// Seals the blocks of some pages anew under the file's new key, and stores them; whether there are more.
  func rekeyPages() throws -> Bool {
    try writing.withLock { _ in
      guard let rekeying = state.withLock({ _ in protectedKey.rekeying }) else { return false }
      try requireWritable()
      guard state.withLock({ _ in pins.isEmpty }) else { throw VaultError.busy }
      guard let object else { return false }
      try flush()
      let pageCount = MapPage.pageCount(blockCount: object.reference.blockCount(of: byteCount))
      var count = 0
      var next: UInt64?
      defer { noteChange() }
      try forEachPage(in: rekeying.nextPage..<max(rekeying.nextPage, pageCount)) { page in
        if count == Self.pagesInStep {
          next = page.index
          return false
        }
        count += 1
        try rekey(page, object)
        return true
      }
      state.withLock { _ in
        cipher = cipher?.rekeyed(upTo: next)
        if let next { protectedKey.rekeying?.nextPage = next } else { protectedKey.rekeying = nil }
      }
      needsSync = true
      noteChange()
      try joinWhileWriting()
      return next != nil
    }
  }

  /// Under `writing`. Where it throws, the page is as it was.
  private func rekey(_ found: CachedPage, _ object: ContentObject) throws {
    let page = try writablePage(found.index, placing: found.blocks.count << object.exponent)
    let first = page.index * VaultFormat.blocksPerPage
    let cipher = try presentCipher()
    let (old, new) = (cipher.sealer(page: page.index), cipher.rekeyed(upTo: page.index + 1).sealer(page: page.index))
    var moved: [(block: UInt64, new: MapPage.Block)] = []
    do {
      try vault.files.buffers.withPlaintext(object.blockSize) { bytes in
        let content = UnsafeRawBufferPointer(bytes)
        for (position, block) in page.blocks.enumerated() {
          guard let block else { continue }
          let number = first + UInt64(position)
          guard try object.file.readFully(at: block.slot << object.exponent, into: bytes) == bytes.count,
            (try? old.open(content, block: number, seal: block.seal, into: bytes)) != nil
          else { throw VaultError.damaged(what: "a block of a file's content") }
          let slot = state.withLock { _ in slots.take(upTo: 1).lowerBound }
          let seal: BlockSeal
          do {
            seal = try new.seal(content, block: number, into: bytes)
            try object.file.writeAll(content, at: slot << object.exponent)
          } catch {
            state.withLock { _ in slots.giveBack(slot..<(slot + 1)) }
            throw error
          }
          moved.append((number, MapPage.Block(slot: slot, seal: seal)))
        }
      }
    } catch {
      state.withLock { _ in for (_, block) in moved { slots.giveBack(block.slot..<(block.slot + 1)) } }
      throw error
    }
    state.withLock { _ in
      for (block, new) in moved { replace(block, in: page, with: new) }
      page.forgetSealer()
      self.cipher = cipher.rekeyed(upTo: page.index + 1)
      protectedKey.rekeying?.nextPage = page.index + 1
    }
  }
}
