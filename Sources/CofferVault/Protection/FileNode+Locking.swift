internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// What a lock takes away from a file in use, and what an unlock brings back: its key, the keys of its pages, and every
/// byte of plaintext in memory.
///
/// Who writes holds `writing`, and who reads has entered `readers`: both keep the key from going until they are done.
extension FileNode {
  var protection: ProtectionClass { state.withLock { _ in protectedKey.protection } }

  /// Runs a reader while the file's cipher is there, which the first one brings. Throws `locked` where the key is away and
  /// cannot come back yet.
  func reading<Result>(_ body: () throws -> Result) throws -> Result {
    while !readers.enter() { try writing.withLock { _ in _ = try presentCipher() } }
    defer { readers.leave() }
    return try body()
  }

  /// The cipher, for a reader: a writer may be about to change it.
  func readersCipher() throws -> FileCipher {
    guard let cipher = state.withLock({ _ in cipher }) else { throw VaultError.locked }
    return cipher
  }

  /// Has the key of a file that goes on behind a lock there before one comes.
  func bringKeyThatStays() throws { if protection == .completeUnlessOpen { try reading {} } }

  /// The file's cipher; brings the key where nobody has needed it yet, or the vault was unlocked meanwhile, else throws
  /// `locked`. Under `writing`.
  func presentCipher() throws -> FileCipher {
    if let cipher { return cipher }
    guard !vault.files.isClosed else { throw VaultError.badHandle }
    let first: FileCipher.Part = object != nil ? .firstPage : sealedPlain != nil ? .inline : .nothing
    let cipher = try state.withLock { _ in protectedKey }.cipher(number, vault, first: first)
    // As long as it has a user, no commit lets the object go that its rows name.
    try object?.open(in: vault.objects, writing: !vault.isReadOnly)
    try takeBack(cipher)
    readers.open()
    return cipher
  }

  /// Takes the key away: what waits in memory is sealed first. Returns when no call uses the key any more.
  ///
  /// - Parameter stays: asked when nobody can begin to use the key any more; where it is true, the key stays.
  func dropKey(unless stays: () -> Bool = { false }) { writing.withLock { _ in dropKeyWhileWriting(unless: stays) } }

  /// As ``dropKey(unless:)``, for whoever may hold a file's `writing`, perhaps this one's: `false` where somebody holds it, and
  /// the key is where it was.
  func dropKeyIfIdle(unless stays: () -> Bool) -> Bool {
    writing.withLockIfAvailable { _ in dropKeyWhileWriting(unless: stays) } != nil
  }

  private func dropKeyWhileWriting(unless stays: () -> Bool) {
    readers.close()
    guard let cipher else { return }
    guard !stays() else { return readers.open() }
    // What finds no room, or fails, stays in memory without a byte of plaintext.
    try? flushAll()
    putAway(cipher)
  }

  /// Takes the key away that the file's class does not allow any more: it became class complete while the vault was locked,
  /// and whoever took the keys away found it in its former class. Under `writing`, after the change.
  func dropKeyIfGone() {
    guard protection == .complete, vault.keys.areGone else { return }
    readers.close()
    if let cipher { putAway(cipher) }
  }

  private func putAway(_ cipher: FileCipher) {
    var freed = 0
    state.withLock { _ in
      if object == nil {
        // Sealing fails only where the library does; then secrecy goes before what was not yet stored.
        sealedPlain = (try? cipher.sealInline(plain.bytes)) ?? sealedPlain
        freed += Self.counted(plain.count)
        plain = PlainBytes()
      }
      for (block, buffer) in dirtyBlocks {
        let sealer = cipher.sealer(page: block / VaultFormat.blocksPerPage)
        if let sealed = try? SealedDirtyBlock(sealing: UnsafeRawBufferPointer(buffer.bytes), block, sealer) {
          sealedBlocks[block] = sealed
        }
        freed += buffer.bytes.count
        overwrite(buffer.bytes)
      }
      dirtyBlocks = [:]
      for page in pages.values { page.forgetSealer() }
      self.cipher = nil
    }
    vault.files.didBuffer(-freed)
  }

  private func takeBack(_ cipher: FileCipher) throws {
    var taken = 0
    var opened = PlainBytes()
    if let sealedPlain {
      try cipher.withInline(sealedPlain) { bytes in
        guard UInt64(bytes.count) == byteCount else { throw VaultError.damaged(what: "a file's content") }
        opened = PlainBytes(copying: bytes)
      }
    }
    var blocks: [UInt64: TransferBuffer] = [:]
    for (block, sealed) in sealedBlocks {
      let sealer = cipher.sealer(page: block / VaultFormat.blocksPerPage)
      let buffer = TransferBuffer(count: sealed.ciphertext.count)
      try sealed.ciphertext.withUnsafeBytes {
        try sealer.open($0, block: block, seal: sealed.seal, into: buffer.bytes)
      }
      blocks[block] = buffer
    }
    state.withLock { _ in
      if sealedPlain != nil {
        swap(&plain, &opened)
        taken += Self.counted(plain.count)
      }
      for (block, buffer) in blocks {
        dirtyBlocks[block] = buffer
        taken += buffer.bytes.count
      }
      sealedPlain = nil
      sealedBlocks = [:]
      self.cipher = cipher
    }
    vault.files.didBuffer(taken)
  }

  /// Gives blocks that were sealed when the key went their slots. Under `writing`.
  func placeSealedBlocks() throws {
    guard let object else { return }
    for block in sealedBlocks.keys.sorted() {
      guard let sealed = sealedBlocks[block] else { continue }
      let page = try writablePage(block / VaultFormat.blocksPerPage, placing: object.blockSize)
      let taken = state.withLock { _ in slots.take(upTo: 1) }
      do {
        try sealed.ciphertext.withUnsafeBytes { try object.file.writeAll($0, at: taken.lowerBound << object.exponent) }
      } catch {
        state.withLock { _ in slots.giveBack(taken) }
        throw error
      }
      state.withLock { _ in
        replace(block, in: page, with: MapPage.Block(slot: taken.lowerBound, seal: sealed.seal))
        sealedBlocks[block] = nil
        newBlocks.remove(block)
      }
    }
  }
}

/// A file's key as its record has it.
struct ProtectedKey: Sendable {
  let protection: ProtectionClass
  let wrapped: [UInt8]
  let commitment: [UInt8]
  var rekeying: Rekeying?

  init(_ inode: Inode) {
    protection = inode.protection
    wrapped = inode.wrappedKey
    commitment = inode.keyCommitment
    rekeying = inode.rekeying
  }

  init(protection: ProtectionClass, wrapped: [UInt8], commitment: [UInt8], rekeying: Rekeying? = nil) {
    self.protection = protection
    self.wrapped = wrapped
    self.commitment = commitment
    self.rekeying = rekeying
  }

  /// Throws `locked`, or `damaged` where the key is not the one that was committed to.
  ///
  /// - Parameter first: what it is about to open.
  func cipher(_ inode: InodeNumber, _ vault: Vault, first: FileCipher.Part) throws -> FileCipher {
    do {
      let (key, derivation) = try key(wrapped, commitment, vault)
      let cipher = FileCipher(key: key, derivation, vault: vault.id, inode: inode, first: first)
      guard let rekeying else { return cipher }
      return cipher.with(
        earlier: try self.key(rekeying.wrappedKey, rekeying.keyCommitment, vault).key, from: rekeying.nextPage)
    } catch is CryptoError {
      throw VaultError.damaged(what: "a file's key")
    }
  }

  private func key(
    _ wrapped: [UInt8], _ commitment: [UInt8], _ vault: Vault
  ) throws -> (key: SecretKey, derivation: KeyDerivation) {
    let key = try vault.keys.unwrapInUse(wrapped, for: protection)
    let derivation = KeyDerivation(from: key)
    guard equalInConstantTime(derivation.commitment, commitment) else { throw CryptoError.notAuthentic }
    return (key, derivation)
  }

  /// Writes the key into a record.
  func store(in inode: inout Inode) {
    inode.protection = protection
    inode.wrappedKey = wrapped
    inode.keyCommitment = commitment
    inode.rekeying = rekeying
  }
}

/// A block's ciphertext that has no slot yet.
struct SealedDirtyBlock: Sendable {
  let seal: BlockSeal
  let ciphertext: [UInt8]

  init(sealing plaintext: UnsafeRawBufferPointer, _ block: UInt64, _ sealer: BlockSealer) throws {
    var ciphertext = [UInt8](repeating: 0, count: plaintext.count)
    seal = try ciphertext.withUnsafeMutableBytes { try sealer.seal(plaintext, block: block, into: $0) }
    self.ciphertext = ciphertext
  }
}
