internal import CofferCrypto
public import CofferFiles
internal import CofferSystem

extension Vault {
  /// Stores a new file at `path`, in place of a file that has the name where `replacing`.
  ///
  /// The content is sealed on all cores in constant memory, and becomes visible in one step when it is complete and its
  /// bytes are on the disk; ``commit()`` makes the name durable. Where it fails or is cancelled, nothing of it stays.
  @discardableResult
  public func importFile(
    _ source: ImportSource, to path: VaultPath, replacing: Bool = false, control: TransferControl = TransferControl()
  ) throws(VaultError) -> FileAttributes {
    guard path.lastName != nil else { throw .isADirectory }
    return try VaultError.catching {
      let number = try self.change { session in
        try self.checkTarget(path, replacing: replacing, session)
        return session.newInodeNumber()
      }
      let start = try SourceReader.start(of: source, control: control)
      if control.isCancelled() { throw VaultError.cancelled }
      if start.count <= VaultFormat.inlineLimit {
        return try self.storeInline(start, number, source, path, replacing: replacing, control)
      }
      return try self.storeObject(start, number, source, path, replacing: replacing, control)
    }
  }

  private func storeInline(
    _ bytes: [UInt8], _ number: InodeNumber, _ source: ImportSource, _ path: VaultPath, replacing: Bool,
    _ control: TransferControl
  ) throws -> FileAttributes {
    if let expected = source.byteCount, expected != UInt64(bytes.count) { throw VaultError.sourceChanged }
    let cipher = FileCipher(key: SecretKey(), vault: id, inode: number)
    let sealed = try cipher.sealInline(bytes)
    control.progress(bytes.count)
    return try change { session in
      try self.link(
        number, cipher, source, byteCount: UInt64(bytes.count), content: .inline(sealed), path, replacing: replacing,
        session)
    }
  }

  private func storeObject(
    _ start: [UInt8], _ number: InodeNumber, _ source: ImportSource, _ path: VaultPath, replacing: Bool,
    _ control: TransferControl
  ) throws -> FileAttributes {
    let exponent = VaultFormat.blockSizeExponent(for: source.byteCount)
    let object = try reserveObject(blockSizeExponent: exponent) { PendingRemoval(inode: number, object: $0) }
    let cipher = FileCipher(key: SecretKey(), vault: id, inode: number)
    do {
      let writer = ObjectWriter(
        vault: self, inode: number, object: object, file: try objects.create(object.number), cipher: cipher)
      let byteCount = try writer.write(source, start: start, control: control)
      return try change { session in
        try writer.storeRemainingPages(session)
        try session.removePending(number)
        let slots = SlotUse(reach: object.blockCount(of: byteCount), used: object.blockCount(of: byteCount))
        return try self.link(
          number, cipher, source, byteCount: byteCount, content: .object(object, slots), path, replacing: replacing,
          session)
      }
    } catch {
      // Nothing names it, for a change that throws was not applied. While the mark is there, the next opening does
      // what fails here.
      try? objects.remove(object.number)
      try? remove(number)
      throw error
    }
  }

  /// Takes an object's number, and marks the object for removal until a record names it: whatever commits meanwhile, a
  /// crash leaves nothing. Only so many may be unknown to the last commit, because that is how far an opening after a
  /// crash looks for leftovers.
  private func reserveObject(
    blockSizeExponent: UInt8, mark: (ObjectReference) -> PendingRemoval
  ) throws -> ObjectReference {
    let uncommitted = index.read { $0.root.nextObject - $0.committedNextObject }
    // Some are left for other threads that ask at the same moment.
    if uncommitted >= VaultFormat.uncommittedObjects - 16 { try commitJoined() }
    return try perform { session in
      let object = ObjectReference(number: session.root.nextObject, blockSizeExponent: blockSizeExponent)
      guard object.number - session.committedNextObject < VaultFormat.uncommittedObjects else {
        throw VaultError.inUse(holder: nil)
      }
      session.root.nextObject += 1
      try session.addPending(mark(object))
      return object
    }
  }

  /// A new object, marked for removal until a file's join names it.
  func createObject(blockSizeExponent: UInt8) throws -> ContentObject {
    let reference = try reserveObject(blockSizeExponent: blockSizeExponent) { PendingRemoval(object: $0) }
    do {
      return ContentObject(reference: reference, file: try objects.create(reference.number))
    } catch {
      try? perform { session in session.removeObjectAfterCommit(PendingRemoval(object: reference)) }
      throw error
    }
  }

  private func checkTarget(_ path: VaultPath, replacing: Bool, _ session: IndexSession) throws {
    let parent = try session.resolveFolder(path.parent)
    guard let name = path.lastName, let existing = try session.entry(name, in: parent.number) else { return }
    guard existing.kind != .directory else { throw VaultError.isADirectory }
    guard replacing else { throw VaultError.exists }
  }

  private func link(
    _ number: InodeNumber, _ cipher: FileCipher, _ source: ImportSource, byteCount: UInt64, content: Inode.Content,
    _ path: VaultPath, replacing: Bool, _ session: IndexSession
  ) throws -> FileAttributes {
    // Asked again: names may have changed while the content was sealed.
    try checkTarget(path, replacing: replacing, session)
    guard let name = path.lastName else { throw VaultError.isADirectory }
    let parent = try session.resolveFolder(path.parent)
    let now = time.now()
    let inode = Inode(
      number: number, kind: .file, protection: parent.protection, permissions: source.permissions & 0o7777,
      owner: .process, modified: source.modified ?? now, now: now, byteCount: byteCount,
      wrappedKey: try keys.classKeys.wrap(cipher.key, for: parent.protection), keyCommitment: cipher.key.commitment,
      content: content)
    try insert(inode, as: name, in: parent.number, replacing: replacing, session)
    return FileAttributes(inode)
  }
}
