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
    try store(source, at: path, replacing: replacing, control)
  }

  /// As `importFile`, also while the vault is locked: a file that would be of class complete then is one of class
  /// complete-unless-open, and becomes complete when the vault is unlocked. Nothing that is there is replaced.
  @discardableResult
  public func deposit(
    _ source: ImportSource, to path: VaultPath, control: TransferControl = TransferControl()
  ) throws(VaultError) -> FileAttributes {
    try store(source, at: path, replacing: false, isDeposit: true, control)
  }

  private func store(
    _ source: ImportSource, at path: VaultPath, replacing: Bool, isDeposit: Bool = false, _ control: TransferControl
  ) throws(VaultError) -> FileAttributes {
    guard path.lastName != nil else { throw .isADirectory }
    return try VaultError.catching {
      let byteCount = Int(clamping: source.byteCount ?? 0)
      let addition = byteCount > VaultFormat.inlineLimit ? Addition.content(byteCount) : .rows
      let (number, protection) = try self.change(adding: addition) { session in
        let parent = try self.checkTarget(path, replacing: replacing, session)
        try session.requireRoom()
        return (session.newInodeNumber(), self.newClass(in: parent))
      }
      let isKept = isDeposit && protection == .complete && isLocked
      let key = try NewFileKey(number, isKept ? .completeUnlessOpen : protection, isDeposit: isKept, self)
      let start = try SourceReader.start(of: source, control: control)
      if control.isCancelled() { throw VaultError.cancelled }
      if start.count <= VaultFormat.inlineLimit {
        return try self.storeInline(start, key, source, path, replacing: replacing, control)
      }
      return try self.storeObject(start, key, source, path, replacing: replacing, control)
    }
  }

  private func storeInline(
    _ start: SourceStart, _ key: NewFileKey, _ source: ImportSource, _ path: VaultPath, replacing: Bool,
    _ control: TransferControl
  ) throws -> FileAttributes {
    if let expected = source.byteCount, expected != UInt64(start.count) { throw VaultError.sourceChanged }
    let sealed = try key.held.use { try $0.sealInline(start.bytes) }
    control.progress(start.count)
    return try change(adding: .rows) { session in
      try self.link(
        key, source, byteCount: UInt64(start.count), content: .inline(sealed), path, replacing: replacing,
        session)
    }
  }

  private func storeObject(
    _ start: SourceStart, _ key: NewFileKey, _ source: ImportSource, _ path: VaultPath, replacing: Bool,
    _ control: TransferControl
  ) throws -> FileAttributes {
    let exponent = VaultFormat.blockSizeExponent(for: source.byteCount)
    try objects.requireDescriptor()
    let object = try reserveObject(blockSizeExponent: exponent) { PendingRemoval(inode: key.number, object: $0) }
    do {
      let writer = ObjectWriter(
        vault: self, inode: key.number, object: object, file: try objects.create(object.number), cipher: key.held)
      let byteCount = try writer.write(source, start: start, control: control)
      return try change(adding: .rows) { session in
        try writer.storeRemainingPages(session)
        try session.removePending(key.number)
        let slots = SlotUse(reach: object.blockCount(of: byteCount), used: object.blockCount(of: byteCount))
        return try self.link(
          key, source, byteCount: byteCount, content: .object(object, slots), path, replacing: replacing,
          session)
      }
    } catch {
      // Nothing names it, for a change that throws was not applied. While the mark is there, the next opening does
      // what fails here.
      try? objects.remove(object.number)
      try? remove(key.number)
      throw error
    }
  }

  /// Takes an object's number, and marks the object for removal until a record names it: whatever commits meanwhile, a
  /// crash leaves nothing. Only so many may be unknown to the last commit, because that is how far an opening after a
  /// crash looks for leftovers.
  private func reserveObject(
    blockSizeExponent: UInt8, mark: (ObjectReference) -> PendingRemoval
  ) throws -> ObjectReference {
    try makeRoom { session in
      let uncommitted = session.root.nextObject - session.committedNextObject
      // Some are left for other threads that ask at the same moment.
      if uncommitted >= VaultFormat.uncommittedObjects - 16 { return .first }
      return uncommitted >= VaultFormat.uncommittedObjects / 2 ? .soon : .none
    }
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
    // Before anything is stored for one that cannot be made.
    try objects.requireDescriptor()
    let reference = try reserveObject(blockSizeExponent: blockSizeExponent) { PendingRemoval(object: $0) }
    do {
      return ContentObject(reference, file: try objects.create(reference.number))
    } catch {
      try? perform { session in session.removeObjectAfterCommit(PendingRemoval(object: reference)) }
      throw error
    }
  }

  /// The folder that will hold the file.
  @discardableResult
  private func checkTarget(_ path: VaultPath, replacing: Bool, _ session: IndexSession) throws -> Inode {
    let parent = try session.resolveFolder(path.parent)
    guard let name = path.lastName, let existing = try session.entry(name, in: parent.number) else { return parent }
    guard existing.kind != .directory else { throw VaultError.isADirectory }
    guard replacing else { throw VaultError.exists }
    return parent
  }

  private func link(
    _ key: NewFileKey, _ source: ImportSource, byteCount: UInt64, content: Inode.Content,
    _ path: VaultPath, replacing: Bool, _ session: IndexSession
  ) throws -> FileAttributes {
    // Asked again: names may have changed while the content was sealed.
    let parent = try checkTarget(path, replacing: replacing, session)
    guard let name = path.lastName else { throw VaultError.isADirectory }
    let now = time.now()
    // An unlock that came meanwhile has not seen its mark, and one that comes now waits for the index, and will.
    let completed = key.isDeposit ? try key.completed(self) : nil
    let protected = completed ?? key.protected
    let inode = Inode(
      number: key.number, kind: .file, protection: protected.protection, permissions: source.permissions & 0o7777,
      owner: .process, modified: source.modified ?? now, now: now, byteCount: byteCount,
      wrappedKey: protected.wrapped, keyCommitment: protected.commitment,
      content: content)
    try insert(inode, as: name, in: parent.number, replacing: replacing, session)
    if completed == nil, key.isDeposit { try session.addDeposit(inode.number) }
    return FileAttributes(inode)
  }
}
