internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// The files in use: one node for each, however many handles and snapshots it has.
///
/// A node without users stays while something of it is to be done: a join that failed, or slots that wait for a commit.
final class FileRegistry: Sendable {
  let buffers = BufferPool()
  /// Touched here and in `FileRegistry+Names` alone.
  let state = Mutex(State())
  let settling = TimedCondition()
  private let buffered = Atomic(0)
  let loadedPages = Atomic(0)
  private let closed = Atomic(false)
  private let committed = Atomic<UInt64>(0)
  /// Rises when something was removed that nobody needed any more.
  let removalCount = Atomic(0)

  struct State {
    var entries: [InodeNumber: Entry] = [:]
    /// Files that joined, by the generation of the commit that will hold the last join.
    var joined: [InodeNumber: UInt64] = [:]
    /// Files whose key was to go while somebody held their `writing`.
    var keysLeft: Set<InodeNumber> = []
    /// What has no name, is held, and nobody uses.
    var held: [InodeNumber: Held] = [:]
    var holders: [Holder] = []
    var lastHolder = 0
    /// Of those, what a holder has let go of since they were looked at last.
    var letGo: [InodeNumber] = []
    /// Threads that wait until nothing is there that nobody needs.
    var waiterCount = 0
    var removals = Removals()
    /// Whose rows could not be removed, for there was no room; tried again with each commit.
    var postponed: [InodeNumber] = []
    var isRemoving = false

    mutating func forget(_ node: FileNode) {
      if entries[node.number]?.node === node { entries[node.number] = nil }
    }

    /// Its rows go, and nobody uses it any more: whoever is about to join it finds that.
    mutating func removeGone(_ node: FileNode) {
      forget(node)
      node.isGone.store(true, ordering: .releasing)
      if node.hasChanges.load(ordering: .acquiring) { removals.unjoined.append(node) }
    }

    var isSettling: Bool { isRemoving || !removals.isEmpty || !letGo.isEmpty || !nameless.isEmpty }

    /// What has no name, and may be about to lose who uses or holds it. (A program that has closed it goes on before that is heard.)
    var nameless: [InodeNumber] {
      held.keys + entries.values.filter { $0.isUnlinked && $0.users > 0 }.map(\.node.number)
    }

    /// Of these nothing is to be expected any more.
    ///
    /// - Parameter hasHeard: whoever has let go of one has been heard.
    func isSettled(of numbers: [InodeNumber], hasHeard: Bool) -> Bool {
      if isRemoving || !removals.isEmpty { return false }
      return hasHeard || !numbers.contains { held[$0] != nil || entries[$0]?.isUnlinked == true }
    }

    func isHeld(_ number: InodeNumber) -> Bool { holders.contains { $0.holds(number) } }

    /// What has no name and no user stays where it is held, and else goes. Gives the node that goes.
    mutating func leave(_ number: InodeNumber) -> FileNode? {
      let entry = entries[number]
      if isHeld(number) {
        if held[number] == nil { held[number] = Held(isNameless: entry?.isNameless ?? false) }
        return nil
      }
      held[number] = nil
      removals.numbers.append(number)
      guard let entry else { return nil }
      removeGone(entry.node)
      return entry.node
    }
  }

  /// See ``Vault/hold(_:hearing:)``.
  struct Holder {
    let number: Int
    let holds: @Sendable (InodeNumber) -> Bool
    let hearing: @Sendable () -> () -> Bool
  }

  struct Held {
    /// It was made without a name, and may get one.
    let isNameless: Bool
  }

  /// What is to be taken apart of files that are gone.
  struct Removals {
    /// Whose rows are to go.
    var numbers: [InodeNumber] = []
    /// Whose objects no join told of.
    var unjoined: [FileNode] = []

    var isEmpty: Bool { numbers.isEmpty && unjoined.isEmpty }
  }

  /// By reference, for its numbers change several times between an opening and a closing. Touched under `state` alone.
  final class Entry {
    let node: FileNode
    var users = 1
    /// Threads that join it, or give space of it back to the disk. Until they are done no second node may use the object's slots.
    var workers = 0
    /// No name leads here: none any more, or none yet.
    var isUnlinked = false
    /// It was made without a name, and may get one.
    var isNameless = false

    init(_ node: FileNode) { self.node = node }
  }

  /// Plaintext that waits in memory, for all files together.
  private static let bufferedLimit = 2 << 20
  /// Programs read and write files in small pieces, wherever they like.
  let favoursRandomAccess = Atomic(false)
  var mapLimits: MapLimits { favoursRandomAccess.load(ordering: .relaxed) ? .large : .small }

  var isClosed: Bool { closed.load(ordering: .acquiring) }
  func close() { closed.store(true, ordering: .releasing) }
  var committedGeneration: UInt64 { committed.load(ordering: .acquiring) }

  // MARK: Use

  /// The node of an inode, which `make` makes where it has none. Under the index's lock, so that no removal comes
  /// between.
  func use(_ inode: Inode, make: () throws -> FileNode) throws -> FileNode {
    try state.withLock { state in
      if let entry = state.entries[inode.number] {
        entry.users += 1
        return entry.node
      }
      let held = state.held[inode.number]
      // Nobody holds it either: its rows are about to be removed.
      guard inode.linkCount > 0 || held != nil else { throw VaultError.notFound }
      let entry = Entry(try make())
      entry.isUnlinked = held != nil
      entry.isNameless = held?.isNameless ?? false
      state.entries[inode.number] = entry
      return entry.node
    }
  }

  /// One more use of a node that is in use.
  func retain(_ node: FileNode) {
    state.withLock { state in
      guard let entry = state.entries[node.number], entry.node === node else { return }
      entry.users += 1
    }
  }

  func isInUse(_ inode: InodeNumber) -> Bool { state.withLock { ($0.entries[inode]?.users ?? 0) > 0 } }

  /// Somebody uses or holds it.
  func isNeeded(_ inode: InodeNumber) -> Bool {
    state.withLock { ($0.entries[inode]?.users ?? 0) > 0 || $0.isHeld(inode) }
  }

  /// The file has no name, and only one user.
  func goesWithItsUser(_ node: FileNode) -> Bool {
    state.withLock { state in
      guard let entry = state.entries[node.number], entry.node === node else { return false }
      return entry.isUnlinked && entry.users == 1
    }
  }

  func node(_ inode: InodeNumber) -> FileNode? { state.withLock { $0.entries[inode]?.node } }

  /// Ends one use; with the last, removes what has no name and is not held, or gives the file's free space back.
  func release(_ node: FileNode, in vault: Vault) {
    enum Last { case no, gone, kept, forgotten }
    let last = state.withLock { state -> Last in
      guard let entry = state.entries[node.number], entry.node === node else { return .no }
      entry.users -= 1
      guard entry.users == 0 else { return .no }
      if entry.isUnlinked, state.leave(node.number) != nil { return .gone }
      guard entry.workers == 0, node.isSettled else { return .kept }
      state.entries[node.number] = nil
      return .forgotten
    }
    guard !isClosed else { return }
    switch last {
    case .no: break
    case .gone:
      forgetMemory(of: node)
      vault.removeUnlinked()
    case .kept: settle(node)
    case .forgotten: forgetMemory(of: node)
    }
  }

  /// Gives the free space of a file without users back, and forgets the file where nothing is left to do.
  private func settle(_ node: FileNode) {
    guard beginWork(on: node, unlessUsed: true) else { return }
    node.giveBackFreeSlots()
    endWork(on: node)
  }

  /// One more worker, for a file that is known still; ``endWork(on:)`` must follow.
  private func beginWork(on node: FileNode, unlessUsed: Bool = false) -> Bool {
    state.withLock { state in
      guard let entry = state.entries[node.number], entry.node === node, !unlessUsed || entry.users == 0 else {
        return false
      }
      entry.workers += 1
      return true
    }
  }

  /// Ends what began with one more worker; forgets the file where nobody uses it and nothing is left to do.
  private func endWork(on node: FileNode) {
    enum End { case inUse, idle, forgotten }
    let end = state.withLock { state -> End in
      guard let entry = state.entries[node.number], entry.node === node else { return .inUse }
      entry.workers -= 1
      guard entry.users == 0 else { return .inUse }
      guard entry.workers == 0, !node.isUnfinished else { return .idle }
      state.forget(node)
      return .forgotten
    }
    switch end {
    case .inUse: break
    case .idle:
      didDropPages(node.dropCleanPages(all: true))
      // Its last handle is closed, and it must not be opened again while the vault is locked.
      if node.vault.keys.areGone, node.protection == .completeUnlessOpen { dropKeySoon(of: node) }
    case .forgotten: forgetMemory(of: node)
    }
  }

  func forgetMemory(of node: FileNode) {
    // Taken out, so that a thread that is about to give them up counts them no second time.
    didDropPages(node.dropCleanPages(all: true))
    didDropPages(node.pageCount)
    didBuffer(-node.bufferedByteCount)
  }

  // MARK: Commits

  /// Files whose content has changes that have not joined.
  var unjoinedCount: Int {
    state.withLock { state in state.entries.values.count { $0.node.hasChanges.load(ordering: .relaxed) } }
  }

  /// Bytes of slots that go back to the disk when the commit of `generation` is durable.
  func freedByteCount(by generation: UInt64) -> UInt64 {
    let nodes = state.withLock { state in
      state.joined.filter { $0.value <= generation }.keys.compactMap { state.entries[$0]?.node }
    }
    return nodes.reduce(0) { $0 + $1.freedByteCount(by: generation) }
  }

  func didJoin(_ inode: InodeNumber, generation: UInt64) { state.withLock { $0.joined[inode] = generation } }

  /// A commit is durable.
  ///
  /// - Parameter isShort: whether the disk lacks the room that files could give back.
  func didCommit(generation: UInt64, isShort: Bool) {
    // Those of two threads may come here in the other order.
    committed.max(generation, ordering: .acquiringAndReleasing)
    let done = state.withLock { state -> [FileNode] in
      let numbers = state.joined.filter { $0.value <= generation }.keys
      for number in numbers { state.joined[number] = nil }
      return numbers.compactMap { number in
        state.entries[number]?.workers += 1
        return state.entries[number]?.node
      }
    }
    for node in done {
      node.didCommit(generation: generation)
      // Elsewhere a file that is in use keeps them for what is written next.
      if isShort { node.giveBackFreeSlots() }
      settle(node)
      endWork(on: node)
    }
  }

  /// A commit failed, and with it what had joined since `generation`, the last one that is stored.
  func commitFailed(_ error: any Error, after generation: UInt64) {
    let isFinal = !VaultError.wrapping(error).isOfRoom
    let nodes = state.withLock { state in
      state.joined.filter { $0.value > generation }.keys.compactMap { state.entries[$0]?.node }
    }
    for node in nodes { node.record(error, isBreaking: isFinal) }
  }

  /// Joins every file that has changes; one that fails does not keep the others back. Throws the first failure, but one of room
  /// before others, and that it is locked only where there is none else: also one that is known already, because what was written
  /// to that file is still not stored.
  func joinAll() throws {
    // Not the nodes, for one that nobody uses is let go of at once: the next may need its descriptor.
    let numbers = state.withLock { state in state.entries.filter { !$0.value.isUnlinked }.map(\.key) }
    var failure: VaultError?
    for number in numbers {
      guard let node = node(number), node.hasChanges.load(ordering: .acquiring), beginWork(on: node) else { continue }
      defer {
        settle(node)
        endWork(on: node)
      }
      do {
        try node.join()
      } catch {
        // There may be room later, without anybody changing something here.
        if VaultError.wrapping(error).isOfRoom { node.vault.commitSoon() }
        let known = VaultError.wrapping(error) == .needsReopening ? node.overlay.withLock { $0.failure } : nil
        let found = known ?? VaultError.wrapping(error)
        if failure.map({ found.rank > $0.rank }) ?? true { failure = found }
      }
    }
    if let failure { throw failure }
  }

  /// The content of some file found no room when it was to be stored last.
  var waitForRoom: Bool {
    let nodes = state.withLock { state in state.entries.values.filter { !$0.isUnlinked }.map(\.node) }
    return nodes.contains { node in
      node.hasChanges.load(ordering: .acquiring)
        && node.overlay.withLock { $0.isFailing && !$0.isBroken && ($0.failure?.isOfRoom ?? false) }
    }
  }

  // MARK: Locking

  /// Nodes whose key goes with a lock: of class complete, and of class complete-unless-open where nobody has them open.
  private var lockedAway: [FileNode] {
    state.withLock { state in
      state.entries.values.filter { entry in
        entry.node.protection == .complete || (entry.node.protection == .completeUnlessOpen && entry.users == 0)
      }.map(\.node)
    }
  }

  /// Seals what waits in memory of files whose key is about to go. What finds no room on the disk is sealed in memory
  /// when the key goes.
  func sealBeforeLock() {
    for node in lockedAway { try? node.writing.withLock { _ in try node.flushAll() } }
  }

  /// Takes the keys away; returns when no call uses one any more.
  func dropKeys() { for node in lockedAway { dropKey(of: node) } }

  /// Not where somebody has opened it meanwhile, and it goes on behind a lock: who opens uses the node first, and then the key.
  func dropKey(of node: FileNode) { node.dropKey { mayKeepKey(node) } }

  private func mayKeepKey(_ node: FileNode) -> Bool { node.protection == .completeUnlessOpen && isInUse(node.number) }

  /// For whoever makes a commit, perhaps in the midst of joining this very file: where it is being changed, its key goes with the
  /// commit that the timer makes, at the latest.
  private func dropKeySoon(of node: FileNode) {
    if node.dropKeyIfIdle(unless: { mayKeepKey(node) }) { return }
    state.withLock { _ = $0.keysLeft.insert(node.number) }
    node.vault.commitSoon()
  }

  /// Takes away the keys that were to go while their files were being changed. The caller holds no lock.
  func dropKeysLeft() {
    let nodes = state.withLock { state in
      defer { state.keysLeft = [] }
      return state.keysLeft.compactMap { state.entries[$0]?.node }
    }
    // Unlocked meanwhile, it may have it.
    for node in nodes where node.vault.keys.areGone { dropKey(of: node) }
  }

  // MARK: Memory

  /// Bytes that wait in memory for a place in an object, of all files.
  var bufferedByteCount: Int { max(0, buffered.load(ordering: .relaxed)) }

  /// Whether content that has no object yet may wait in memory for one. It goes there as it comes; where there is much of it all the
  /// same, objects cannot be made, and whoever writes is to be told.
  var mayBuffer: Bool { bufferedByteCount <= 4 * Self.bufferedLimit }

  func didBuffer(_ difference: Int) { buffered.wrappingAdd(difference, ordering: .relaxed) }

  /// Pages have come into memory, for somebody who is about to use `page`.
  func didLoadPages(_ loadedCount: Int, for page: CachedPage) {
    let count = loadedPages.wrappingAdd(loadedCount, ordering: .relaxed).newValue
    let limits = mapLimits
    guard count > limits.kept, count % limits.betweenLooks < loadedCount else { return }
    // The files with most of them give up those that nobody asked for lately, and then others.
    let files = nodes.map { (node: $0, count: $0.pageCount) }.filter { $0.count > 0 }.sorted { $0.count > $1.count }
    for _ in 0..<2 {
      var hasDropped = false
      for file in files {
        let dropped = file.node.dropCleanPages(all: false, but: page)
        didDropPages(dropped)
        hasDropped = hasDropped || dropped > 0
        if loadedPages.load(ordering: .relaxed) <= limits.kept { return }
      }
      // What is changed stays, and may be all that is left.
      if hasDropped { return }
    }
  }

  /// Whether pages that nobody has asked for yet find room beside those that are there.
  var hasRoomForPages: Bool {
    loadedPages.load(ordering: .relaxed) + Int(PagesAhead.count) <= mapLimits.kept
  }

  private func didDropPages(_ count: Int) { loadedPages.wrappingSubtract(count, ordering: .relaxed) }

  /// Brings memory under its bounds after a change. The caller holds no lock.
  func relieve(_ node: FileNode) throws {
    if node.needsCommit { try node.vault.commitJoined() }
    if buffered.load(ordering: .relaxed) > Self.bufferedLimit { flushLargest() }
    if loadedPages.load(ordering: .relaxed) > mapLimits.most { dropCleanPages() }
    if loadedPages.load(ordering: .relaxed) > mapLimits.most,
      let largest = nodes.max(by: { $0.dirtyPages < $1.dirtyPages }), largest.dirtyPages > 0
    {
      try? largest.join()
      didDropPages(largest.dropCleanPages(all: true))
    }
  }

  /// Stores what waits in memory of the file that has most of it. Not of one that somebody is at, who may wait for the disk, unless there
  /// is much more than there should be.
  private func flushLargest() {
    let waiting = nodes.map { (node: $0, byteCount: $0.bufferedByteCount) }.filter { $0.byteCount > 0 }
      .sorted { $0.byteCount > $1.byteCount }
    for (node, _) in waiting
    where node.writing.withLockIfAvailable({ _ in (try? node.flushAll()) != nil }) == true { return }
    guard buffered.load(ordering: .relaxed) > 2 * Self.bufferedLimit, let largest = waiting.first?.node else { return }
    try? largest.writing.withLock { _ in try largest.flushAll() }
  }

  /// Gives up all pages that need not stay.
  private func dropCleanPages() { for node in nodes { didDropPages(node.dropCleanPages(all: true)) } }

  func favourRandomAccess(_ isFavoured: Bool) {
    favoursRandomAccess.store(isFavoured, ordering: .relaxed)
    if loadedPages.load(ordering: .relaxed) > mapLimits.kept { dropCleanPages() }
  }

  private var nodes: [FileNode] { state.withLock { $0.entries.values.map(\.node) } }
}

/// Map pages in memory, about 2.6 KB each, for all files together.
struct MapLimits {
  /// Where there are more, clean ones are given up.
  let kept: Int
  /// Where there are more, changed ones join first.
  let most: Int
  /// Changed ones of one file, before it joins by itself.
  let changed: Int
  /// Of one file, so that there is room for others.
  var keptOfOneFile: Int { kept / 2 }
  /// Pages that are loaded before the next look at whether there are too many: a look goes through all of them.
  let betweenLooks: Int

  /// 2 MB, and 4 while much is changed.
  static let small = MapLimits(kept: 768, most: 1536, changed: 256, betweenLooks: 32)
  /// 16 MB, and 21.
  static let large = MapLimits(kept: 6144, most: 8192, changed: 2048, betweenLooks: 256)
}

extension Vault {
  /// Whether programs read and write files in small pieces, wherever they like: then files' maps may take 16 MB of memory, where
  /// they have 2, and files that outgrow their records get blocks of 4 KiB. See ``MapLimits``.
  public func favourRandomAccess(_ isFavoured: Bool) { files.favourRandomAccess(isFavoured) }
}

/// What the registry asks of memory.
extension FileNode {
  var pageCount: Int { state.withLock { _ in pages.count } }
  var dirtyPages: Int { state.withLock { _ in dirtyPageCount } }
  var needsCommit: Bool { state.withLock { _ in slots.needsCommit } }
  fileprivate func freedByteCount(by generation: UInt64) -> UInt64 {
    state.withLock { _ in object.map { slots.waitingCount(until: generation) << $0.exponent } ?? 0 }
  }

  /// Plaintext in memory that could lie in an object. What fits into a record stays as long as the file is in use, and is not
  /// counted: there would be nothing to gain from whoever has most.
  var bufferedByteCount: Int {
    state.withLock { _ in object.map { dirtyBlocks.count << $0.exponent } ?? Self.counted(plain.count) }
  }

  /// What content without an object adds to that.
  static func counted(_ plainCount: Int) -> Int { plainCount > VaultFormat.inlineLimit ? plainCount : 0 }

  /// Under `writing`: nothing but what fits into a record stays in memory.
  func flushAll() throws {
    // Nothing would remove an object that it gets now.
    if isGone.load(ordering: .acquiring) { return }
    if object == nil, plain.count > VaultFormat.inlineLimit { try moveToObject(sized: UInt64(plain.count)) }
    try flush()
  }
}

extension VaultError {
  /// Which of several failures to tell: what may be mended first, and last what an unlock mends.
  fileprivate var rank: Int { isOfRoom ? 2 : self == .locked ? 0 : 1 }
}
