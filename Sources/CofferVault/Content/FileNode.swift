internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// The content of one file in use, shared by its handles and snapshots.
///
/// Locks, in the order in which they are taken: `writing`, then the index's or the registry's, then `state`, then
/// `overlay`. Writers, joins and whoever takes a snapshot hold `writing` throughout; readers only to bring the key and the
/// object, before they read. `state` is held only to look and to change memory, never during input or output, and never
/// while the index is asked.
final class FileNode: Sendable {
  unowned let vault: Vault
  let number: InodeNumber

  /// One change at a time.
  let writing = Mutex<Void>(())
  let state = Mutex<Void>(())

  // Changed under both locks, so that one of them is enough to read.
  nonisolated(unsafe) var byteCount: UInt64
  nonisolated(unsafe) var revision: UInt64
  /// The content of a file that has no object: small, or growing and not yet worth one.
  nonisolated(unsafe) var plain: PlainBytes
  nonisolated(unsafe) var object: ContentObject?
  nonisolated(unsafe) var joinCount: UInt64 = 0

  // Changed under both locks while no reader is inside; see FileNode+Locking.
  /// Nil where a lock took the key away, or nobody has needed it yet.
  nonisolated(unsafe) var cipher: FileCipher?
  /// The content of a file without an object while the key is away.
  nonisolated(unsafe) var sealedPlain: [UInt8]?
  /// Blocks that found no slot before the key went: sealed, they wait here for one.
  nonisolated(unsafe) var sealedBlocks: [UInt64: SealedDirtyBlock] = [:]
  let readers: ReaderGate

  // Under `state`.
  nonisolated(unsafe) var protectedKey: ProtectedKey
  nonisolated(unsafe) var pages: [UInt64: CachedPage] = [:]
  nonisolated(unsafe) var pagesAhead = PagesAhead()
  nonisolated(unsafe) var dirtyPageCount = 0
  /// Plaintext of blocks that were written in part and have no slot yet.
  nonisolated(unsafe) var dirtyBlocks: [UInt64: TransferBuffer] = [:]
  /// Those of them, and of `sealedBlocks`, that lie in no slot as they were before either.
  nonisolated(unsafe) var newBlocks: Set<UInt64> = []
  nonisolated(unsafe) var slots: SlotAllocator
  /// Those that the object's content had at the last join.
  nonisolated(unsafe) var joinedSlotCount: UInt64 = 0
  /// Oldest first.
  nonisolated(unsafe) var pins: [ContentPin] = []
  /// Snapshots of content without an object, which have it sealed.
  nonisolated(unsafe) var smallVersions = 0
  /// The generation of the commit that holds, or will hold, the last join.
  nonisolated(unsafe) var lastJoinGeneration: UInt64 = 0

  // Under `writing`.
  nonisolated(unsafe) var forcedExponent: UInt8?
  nonisolated(unsafe) var hasSearchedSlots = false
  /// The object was written to since it was last synced.
  nonisolated(unsafe) var needsSync = false
  /// Bytes that were written to the object so far, about.
  nonisolated(unsafe) var placedByteCount: UInt64 = 0
  /// The object is marked for removal until a join names it.
  nonisolated(unsafe) var objectIsMarked = false
  /// Objects that the next join lets go.
  nonisolated(unsafe) var retired: [(reference: ObjectReference, isMarked: Bool)] = []

  /// What has not joined yet, and how it went. A leaf among the locks: names are listed under the index's.
  let overlay: Mutex<Overlay>
  let hasChanges = Atomic(false)
  /// The file's rows are being removed.
  let isGone = Atomic(false)
  /// What waits in memory is too much, and could not be stored.
  let isUnrelieved = Atomic(false)

  struct Overlay {
    var byteCount: UInt64
    var storedByteCount: UInt64
    var revision: UInt64
    /// Nil: the record's.
    var modified: Timestamp?
    var changed: Timestamp?
    /// Failures so far, the last one, and whether it leaves the file closed to changes.
    var failures = 0
    var failure: VaultError?
    /// Nothing has been stored since: it is the same once more that fails where it is tried again.
    var isFailing = false
    var isBroken = false
  }

  /// Under the index's lock, so that `inode` is as it stands there.
  ///
  /// The key and the object of a file that is there wait for whoever first reads or writes, as behind a lock and an
  /// unlock. Most openings on a mount are of what the kernel has in its memory, and read nothing here. Whoever opens a file that
  /// goes on behind a lock brings its key at once, without the index's lock (``bringKeyThatStays()``).
  init(_ inode: Inode, _ cipher: FileCipher?, vault: Vault) throws {
    self.vault = vault
    number = inode.number
    // Nothing but a file has a key.
    guard inode.kind != .directory else { throw VaultError.isADirectory }
    guard inode.kind == .file else { throw VaultError.wrongKind }
    protectedKey = ProtectedKey(inode)
    // Also for a file that was just made: the vault may have been locked since.
    if cipher != nil { try vault.keys.requireCreating(inode.protection) }
    self.cipher = cipher
    readers = ReaderGate(isOpen: cipher != nil)
    byteCount = inode.byteCount
    revision = inode.revision
    slots = SlotAllocator(SlotUse(reach: 0, used: 0))
    plain = PlainBytes()
    switch inode.content {
    // The record, which is authenticated, says all that there is to an empty file.
    case .inline where inode.byteCount == 0: break
    case .inline(let sealed): sealedPlain = sealed
    case .object(let reference, let use):
      object = ContentObject(reference)
      slots = SlotAllocator(use)
      joinedSlotCount = use.used
    case .directory, .symbolicLink, .special: throw VaultError.damaged(what: "the kind of a file")
    }
    overlay = Mutex(
      Overlay(
        byteCount: inode.byteCount, storedByteCount: FileAttributes(inode).storedByteCount, revision: inode.revision))
  }

  // MARK: Attributes

  /// A record's attributes with what has not joined.
  func attributes(over stored: FileAttributes) -> FileAttributes {
    var attributes = stored
    overlay.withLock { overlay in
      attributes.byteCount = overlay.byteCount
      attributes.storedByteCount = overlay.storedByteCount
      attributes.revision = overlay.revision
      if let modified = overlay.modified { attributes.modified = modified }
      if let changed = overlay.changed { attributes.changed = max(changed, attributes.changed) }
    }
    return attributes
  }

  /// The times of the record count again: somebody has just set them there.
  func forgetModified() { overlay.withLock { $0.modified = nil } }

  /// Notes that the content changed. Under `writing`.
  func didChange() {
    let now = vault.time.now()
    state.withLock { _ in revision += 1 }
    let stored = storedByteCount
    overlay.withLock { overlay in
      overlay.byteCount = byteCount
      overlay.storedByteCount = stored
      overlay.revision = revision
      overlay.modified = now
      overlay.changed = now
    }
    noteChange()
  }

  /// Tells those who observe the vault that the content may have changed. Each thread for itself, for others are told of what one
  /// observer changes than of what another does. The caller holds no lock.
  func tellChange() {
    if !vault.changeObservers.isEmpty { vault.changeObservers.tell([.content(of: number)]) }
  }

  /// What the content takes in its object, or in its record; with what waits in memory for a place in the object. It stays as
  /// it is when the file joins, for others remember what they were told.
  var storedByteCount: UInt64 {
    state.withLock { _ in
      if let object { return (slots.used + UInt64(newBlocks.count)) << object.exponent }
      guard byteCount > UInt64(VaultFormat.inlineLimit) else { return byteCount }
      // It is about to get an object.
      let exponent = exponentOfObject(sized: byteCount)
      return (byteCount + (1 << exponent) - 1) & ~((1 << exponent) - 1)
    }
  }

  /// Here nobody knows how large the file will be, only how large it is when it first needs blocks.
  func exponentOfObject(sized size: UInt64) -> UInt8 {
    if let forcedExponent { return forcedExponent }
    return vault.files.favoursRandomAccess.load(ordering: .relaxed)
      ? VaultFormat.blockSizeExponents.lowerBound : VaultFormat.blockSizeExponent(for: size)
  }

  func noteChange() {
    if !hasChanges.exchange(true, ordering: .acquiringAndReleasing) { vault.commitSoon() }
  }

  // MARK: Failures

  func requireWritable() throws {
    guard !vault.isReadOnly else { throw VaultError.olderThanAnchor }
    guard !vault.files.isClosed else { throw VaultError.badHandle }
    if overlay.withLock({ $0.isBroken }) { throw VaultError.needsReopening }
    _ = try presentCipher()
  }

  /// Remembers a failure that every handle reports once.
  func record(_ failure: any Error, isBreaking: Bool) {
    let failure = VaultError.wrapping(failure)
    if failure == .needsReopening { return }
    overlay.withLock { overlay in
      if isBreaking || !overlay.isFailing || overlay.failure != failure { overlay.failures += 1 }
      overlay.failure = failure
      overlay.isFailing = true
      if isBreaking { overlay.isBroken = true }
    }
  }
}
