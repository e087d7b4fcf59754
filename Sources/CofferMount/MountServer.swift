internal import CFuse3
public import CofferContainer
internal import CofferFiles
internal import CofferSystem
internal import Foundation
internal import Glibc
internal import Synchronization

/// One mount: answers the kernel's requests for a view of a container, from threads of its own.
///
/// The kernel keeps names, attributes and content without asking again, and is told where somebody else changes them. It
/// also keeps what is written to mappings for a while; msync(2), close(2) and the end of the mount bring that into the vault.
public final class MountServer: Sendable {
  public let view: ContainerView
  /// The mount point, as a canonical path.
  public let place: String
  let session: FuseSession
  let changes: ChangeQueue
  let handshake = Handshake()
  let buffers = AnswerBuffers()
  let nodes = KernelNodes()
  let removed = RemovedNodes()
  let closing: ClosingFiles<ViewFile>
  let foldersAhead: FoldersAhead
  /// Folders whose entries others have changed since the kernel last asked.
  private let changedFolders = Mutex<Set<InodeNumber>>([])
  private let didEnd: @Sendable (MountServer) -> Void
  private let phase = Mutex(Phase.starting)
  /// What kept the last of what programs wrote from being stored, when the mount ended.
  private let failure = Mutex<ViewError?>(nil)
  private let phaseChanged = TimedCondition()
  /// Whether something is lost that programs had stored to mappings.
  public let loss = UntoldLoss()
  /// Programs that used it when it was ended all the same.
  private let cutOffUsers = Mutex(MountUsers())
  private let isHeldElsewhere = Atomic(false)
  /// Nobody asks any more.
  private let hasKernelLetGo = Atomic(false)
  /// Threads that wait until a kernel has been told.
  private let waiterCount = Atomic(0)
  let writers = Mutex<[InodeNumber: Writers]>([:])
  let pastPages = WritesPastPages()
  /// Somebody else has changed a file that is open for writing here.
  private let isDisturbed = Atomic(false)
  private let observations = Mutex<[ContainerObservation]>([])

  /// `cutOff`: nothing passes any more, and what could be stored is, but the kernel has not let go of the mount, because programs
  /// use it.
  private enum Phase { case starting, mounted, live, cutOff, ended }

  /// How often a file is open for writing, and whether somebody else has changed it since the last write.
  struct Writers {
    var count = 0
    var areDisturbed = false
    /// Where the kernel was told last that the file ends, because another mount had moved it.
    var toldEnd: UInt64?
  }

  /// The mount whose requests the calling thread answers.
  @TaskLocal static var answering: MountServer?

  /// Mounts `view`, and returns when programs can use it.
  ///
  /// - Parameters:
  ///   - place: an empty folder, as a canonical path.
  ///   - settings: what the mount allows.
  ///   - didEnd: called on a thread of the mount's when it has ended, whoever ended it.
  /// Throws ``MountError``.
  public static func mount(
    _ view: ContainerView, at place: String, _ settings: MountSettings,
    didEnd: @escaping @Sendable (MountServer) -> Void
  ) throws(MountError) -> MountServer {
    let server: MountServer
    do { server = try MountServer(view, place, didEnd) } catch { throw .noThread }
    do {
      try server.start(settings)
    } catch {
      server.changes.end()
      server.foldersAhead.end()
      server.closing.end()
      throw error
    }
    return server
  }

  private init(
    _ view: ContainerView, _ place: String, _ didEnd: @escaping @Sendable (MountServer) -> Void
  ) throws(SystemError) {
    self.view = view
    self.place = place
    self.didEnd = didEnd
    let session = FuseSession()
    self.session = session
    let nodes = self.nodes
    let closing = try ClosingFiles<ViewFile>()
    self.closing = closing
    do throws(SystemError) {
      foldersAhead = try FoldersAhead(view)
    } catch {
      closing.end()
      throw error
    }
    do throws(SystemError) {
      let writers = self.writers
      changes = try ChangeQueue { Self.tell($0, session, nodes) { Self.lastByte(of: $0, view, writers) } }
    } catch {
      foldersAhead.end()
      closing.end()
      throw error
    }
  }

  private func start(_ settings: MountSettings) throws(MountError) {
    // Nothing that is stored in a vault shall get privileges by being mounted.
    var options = "fsname=coffer,subtype=coffer,default_permissions,nosuid,nodev"
    if view.isReadOnly { options += ",ro" }
    if settings.allowsOthers { options += ",allow_other" }
    try session.make(["coffer", "-o", options], Self.operations, for: self)
    do {
      try startThreads(settings)
    } catch {
      session.destroy()
      throw .noThread
    }
    do {
      try session.mount(at: place, allowsOthers: settings.allowsOthers)
    } catch {
      defer { set(.ended) }
      // The helper that mounts for who is not root is a process more.
      if error == .failed, (try? NewThread.start {}) == nil { throw .noThread }
      throw error
    }
    observations.withLock { observations in
      observations = [
        view.observeChanges { [weak self] found in
          self?.didChange(found)
        },
        view.observeLocking { [weak self] in self?.dropContent() },
      ]
    }
    set(.mounted)
    if waitForPhase({ $0 == .live || $0 == .ended }) == .ended { throw .failed }
    Mounts.setReadAhead(at: place)
  }

  /// Starts those that answer when the mount is made, and keep the server until it has ended. All of them, and before: an answer
  /// may have to wait for another's, and a mount that nobody answers for may be hard to take down. Throws where there are none.
  private func startThreads(_ settings: MountSettings) throws(SystemError) {
    let threads = try ReservedThreads(count: FuseSession.threadCount)
    do throws(SystemError) {
      try NewThread.start { [self] in
        guard waitForMount() else { return threads.dismiss() }
        session.serve(self, on: threads, keepsAwake: !settings.savesPower) { [closing] in
          closing.startClosing()
        } ended: { [weak self] in
          self?.hasKernelLetGo.store(true, ordering: .releasing)
        }
        changes.end()
        finish()
      }
    } catch {
      threads.dismiss()
      throw error
    }
  }

  private func set(_ new: Phase) {
    phaseChanged.withLock {
      phase.withLock { $0 = new }
      phaseChanged.broadcast()
    }
  }

  /// Waits until `isReached` is true of the phase.
  private func waitForPhase(_ isReached: (Phase) -> Bool) -> Phase {
    phaseChanged.withLock {
      while true {
        let present = phase.withLock { $0 }
        if isReached(present) { return present }
        phaseChanged.wait()
      }
    }
  }

  /// Returns when the system has made the mount, or refused it: `false` for that.
  private func waitForMount() -> Bool { waitForPhase { $0 != .starting } == .mounted }

  /// The kernel has said hello.
  func didBecomeLive() { set(.live) }

  private func finish() {
    // A mount that was torn from its server stays in the tree, with what the kernel has, for who uses it.
    dropAll()
    observations.withLock { $0 = [] }
    removed.forgetAll()
    foldersAhead.end()
    closing.end()
    view.end()
    // What the kernel gave back last.
    commitAll()
    session.destroy()
    set(.ended)
    didEnd(self)
  }

  /// Nothing passes any more, and what programs wrote is stored, as far as it can be.
  public var hasEnded: Bool {
    switch phase.withLock({ $0 }) {
    case .starting, .mounted, .live: false
    case .cutOff, .ended: true
    }
  }

  /// Waits until the mount has ended, though the kernel may keep what is left of it for programs.
  public func waitForEnd() { phaseChanged.withLock { while !hasEnded { phaseChanged.wait() } } }

  /// How long the kernel may take to let go of a mount that has been taken out of the tree, in seconds. It keeps one that a
  /// program has in a name space of its own.
  private static let endTime = 5.0

  /// Waits until the mount has ended, or somebody wants something else; `false` for that. Looks twice a second.
  public func waitForEnd(orUntil isWanted: () -> Bool) -> Bool {
    phaseChanged.withLock {
      while !hasEnded {
        if isWanted() { return false }
        _ = phaseChanged.wait(until: .now + .seconds(0.5))
      }
      return true
    }
  }

  /// Ends the mount. Throws ``MountError/notStored(isFull:arePagesLost:)`` or ``MountError/pagesLost`` where it has ended and something is not
  /// stored, and ``MountError/busy`` where programs use it, unless `isForced`: then what they wrote is brought
  /// into the vault, and nothing passes any more.
  public func end(isForced: Bool) throws(MountError) {
    do {
      try Mounts.unmount(place, isLazy: false)
    } catch {
      guard isForced else { throw error }
      let outcome = Result { () throws(MountError) in
        guard error.isBusy else { throw error }
        let users = if case .busy(let users) = error { users } else { MountUsers(at: place) }
        cutOffUsers.withLock { $0 = users }
        try Mounts.unmount(place, isLazy: true)
      }
      // Also where somebody has taken it out of the tree before, or has hidden it: programs may still stand in it.
      if !hasEnded { cutOff() }
      try requireStored()
      return try outcome.get()
    }
    let end = SuspendingClock.now + .seconds(Self.endTime)
    if !waitForEnd(orUntil: { .now >= end || hasKernelLetGo.load(ordering: .acquiring) }) {
      if hasKernelLetGo.load(ordering: .acquiring) {
        // What programs wrote is being stored, however slow the disk is.
        waitForEnd()
      } else {
        isHeldElsewhere.store(true, ordering: .relaxed)
        cutOff()
      }
    }
    try requireStored()
  }

  /// The programs that an end has cut off, which was forced.
  public var usersCutOff: MountUsers { cutOffUsers.withLock { $0 } }

  /// It was ended where it is seen here, while programs went on to use it where it is not.
  public var hasUsersElsewhere: Bool { isHeldElsewhere.load(ordering: .relaxed) }

  private func requireStored() throws(MountError) {
    let arePagesLost = loss.take()
    if let failure = failure.withLock({ $0 }) {
      throw .notStored(isFull: failure == .full, arePagesLost: arePagesLost)
    }
    if arePagesLost { throw .pagesLost }
  }

  /// A failure is told to whoever ends the mount, unless a later try has stored everything.
  private func commitAll() {
    let outcome = Result { () throws(ViewError) in try view.commitAll() }
    failure.withLock { if case .failure(let error) = outcome { $0 = error } else { $0 = nil } }
  }

  /// Brings what programs wrote into the vault, and lets nothing pass any more.
  private func cutOff() {
    dropContent()
    view.end()
    // Also what was read anew in between.
    dropAll()
    commitAll()
    phaseChanged.withLock {
      phase.withLock { if $0 != .ended { $0 = .cutOff } }
      phaseChanged.broadcast()
    }
  }

  // MARK: What the kernel keeps

  /// Tells the kernel of a change. It may be about to know a file that it has only just been told of, and then takes for true what
  /// it was told: so it is to be told of that once more, and this is `false`.
  private static func tell(
    _ change: KernelChange, _ session: FuseSession, _ nodes: KernelNodes,
    lastByte: (InodeNumber) -> (offset: UInt64, value: UInt8)?
  ) -> Bool {
    if session.tell(change, lastByte: lastByte) { return true }
    return switch change {
    // Who looks a name up has locked its folder until it knows what it found.
    case .name, .end: true
    case .attributes(let node), .content(let node, _): !nodes.isKnown(InodeNumber(value: node))
    }
  }

  /// Nil where the kernel was told of this end already: a program may have stored to that byte since.
  private static func lastByte(
    of number: InodeNumber, _ view: ContainerView, _ writers: Mutex<[InodeNumber: Writers]>
  ) -> (offset: UInt64, value: UInt8)? {
    guard let file = try? view.open(number, .reading) else { return nil }
    defer { try? file.close() }
    var value: UInt8 = 0
    guard let size = try? file.attributes().byteCount, size > 0,
      (try? withUnsafeMutableBytes(of: &value) { try file.read(at: size - 1, into: $0) }) == 1
    else { return nil }
    return writers.withLock { writers in
      guard let present = writers[number], present.toldEnd != size else { return nil }
      writers[number]!.toldEnd = size
      return (size - 1, value)
    }
  }

  /// A program of this mount moves a file's end: where another mount moves it back to where it was, that is news.
  func willMoveEnd(of number: InodeNumber) { writers.withLock { $0[number]?.toldEnd = nil } }

  /// Somebody has opened a file, and uses the kernel's pages. Comes before the answer, so that who writes past these knows of them.
  func didOpen(_ number: InodeNumber, isWriting: Bool) {
    nodes.didOpen(number)
    if isWriting { writers.withLock { $0[number, default: Writers()].count += 1 } }
  }

  func didClose(_ number: InodeNumber) {
    writers.withLock { writers in
      guard let present = writers[number] else { return }
      if present.count > 1 {
        writers[number]!.count -= 1
      } else {
        writers[number] = nil
        if present.areDisturbed { noteDisturbance(writers) }
      }
    }
  }

  /// The kernel is about to be told of files. Throws where the mount has been taken away: nobody would take from it again what it
  /// is told now. An answer that is on its way then is known to who takes the mount away, see ``KernelNodes/tellAll(_:pause:)``.
  func willTell(_ numbers: some Collection<InodeNumber>) throws(ViewError) {
    nodes.willTell(numbers)
    guard view.hasEnded else { return }
    for number in numbers { didGiveBack(number) }
    throw .ended
  }

  /// The kernel has given `count` tellings of a file back, or never got them.
  func didGiveBack(_ number: InodeNumber, _ count: UInt64 = 1) {
    let last = nodes.didGiveBack(number, count) {
      changedFolders.withLock { _ = $0.remove(number) }
      return removed.takeOut(number)
    }
    if let file = last ?? nil { try? file.close() }
  }

  /// Runs `body`, which adds something; once more where it finds the disk full while files are not let go of yet that programs
  /// have closed, for these may have been removed since.
  func withRoom<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch ViewError.full where closing.isBusy {
      closing.finish()
      return try body()
    }
  }

  /// Whether the entries that the kernel has of a folder may be used again. Asked when it is opened: what another has
  /// changed until then is then read anew, also by a reading that began before the change.
  func mayKeepEntries(of folder: InodeNumber) -> Bool { changedFolders.withLock { $0.remove(folder) } == nil }

  /// Lets the kernel write back what it has of files, and forget it, also where a program has it mapped.
  private func dropContent() {
    bringPagesBack()
    didDrop()
  }

  /// The same, and what it has of attributes and of a folder's entries: it asks for a folder's attributes before it lets anybody
  /// pass it, so that of what is below no name is found either.
  private func dropAll() {
    // Where the kernel has let go of the mount, it does not know the root either.
    if session.tell(.content(kernelNumber(view.root))) {
      nodes.tellAll {
        session.tell(.content(kernelNumber($0)))
      } pause: {
        Thread.sleep(forTimeInterval: ChangeQueue.retryTime)
      }
    }
    didDrop()
  }

  private func didDrop() {
    // A file that nobody has open any more shall not count as open when the keys go.
    closing.finish()
    buffers.overwriteAll()
  }

  /// Somebody else has changed something, and goes on when this returns.
  private func didChange(_ found: [ViewChange]) {
    for change in found {
      switch change {
      // Of a folder that it does not know the kernel has no entries.
      case .name(_, let folder) where folder == view.root || nodes.isKnown(folder):
        changedFolders.withLock { _ = $0.insert(folder) }
      case .name: break
      case .content(let number): disturb(number)
      case .attributes: break
      }
    }
    let told = found.flatMap(toKernel)
    let ticket = changes.add(told)
    guard let other = Self.answering else {
      if !ContainerView.isWorkingHere { changes.wait(for: ticket) }
      return
    }
    // The other mount may show another folder: its numbers differ at the root.
    let isAwaited = other.changes.concerns(found.flatMap(other.toKernel))
    if !isAwaited { other.waiting { changes.wait(for: ticket) } }
  }

  /// Whether the kernel shall use no pages of its own for what is written to a file that is opened so. Who only writes needs none:
  /// each write comes here at once anyway, a page would have to be found, filled and thrown away for it, and the kernel would ask
  /// for a new file's capabilities first. They can make no mapping, which the kernel would refuse then.
  func writesPastPages(_ number: InodeNumber, _ flags: CInt) -> Bool {
    guard flags & O_ACCMODE == O_WRONLY else { return false }
    // Where others append as well, the kernel does not know the end, and would put what is appended into its pages elsewhere.
    return !nodes.wasOpened(number) || (flags & O_APPEND != 0 && view.hasOthers)
  }

  /// Runs `body`, which writes to a file past the kernel's pages. It may have some for others all the same, and what was read before
  /// is void then, also where `body` fails. (Newer kernels drop it by themselves, before such a write and after one that did not fail.)
  ///
  /// - Parameter range: where it writes. What others have stored to mappings comes back whole pages at a time, and leaves this out.
  func writingPastPages<Result>(
    _ number: InodeNumber, _ range: Range<UInt64>, _ body: () throws -> Result
  ) throws -> Result {
    try pastPages.writing(number, range) {
      defer { if nodes.wasOpened(number) { dropPages(of: number, range) } }
      return try body()
    }
  }

  /// Has the kernel write back and forget what it has of a range of a file, on a thread that answers a request for that file.
  private func dropPages(of number: InodeNumber, _ range: Range<UInt64>) {
    disturb(number)
    let ticket = changes.add([.content(kernelNumber(number), range)])
    // Nothing is locked meanwhile that this kernel may want, but for pages: whoever has them asks for them, or brings them back.
    session.callAnother()
    waiting { changes.wait(for: ticket) }
  }

  /// Somebody changes a file of which the kernel has pages, not through these.
  private func disturb(_ number: InodeNumber) {
    writers.withLock { writers in
      guard writers[number] != nil else { return }
      writers[number]!.areDisturbed = true
      isDisturbed.store(true, ordering: .sequentiallyConsistent)
    }
  }

  /// Runs `body`, which waits until a kernel has been told, unless so many of this mount's threads do that too few would be left to
  /// answer those for whom that kernel waits.
  private func waiting(_ body: () -> Void) {
    defer { waiterCount.subtract(1, ordering: .relaxed) }
    if waiterCount.add(1, ordering: .relaxed).newValue <= Self.waiterLimit { body() }
  }

  private static let waiterLimit = FuseSession.threadCount / 2

  /// A program has written to a file. The kernel has put the bytes into its pages before it asked; it may have dropped these
  /// since, for somebody else's change, and read them anew before they were written. Whether that can be, and the kernel is to be
  /// told of the content once the write is answered: until then a page may be locked.
  func wasDisturbed(_ number: InodeNumber) -> Bool {
    guard isDisturbed.load(ordering: .sequentiallyConsistent) else { return false }
    return writers.withLock { writers in
      guard writers[number]?.areDisturbed == true else { return false }
      writers[number]!.areDisturbed = false
      noteDisturbance(writers)
      return true
    }
  }

  private func noteDisturbance(_ writers: [InodeNumber: Writers]) {
    isDisturbed.store(writers.values.contains { $0.areDisturbed }, ordering: .sequentiallyConsistent)
  }

  private func toKernel(_ change: ViewChange) -> [KernelChange] {
    switch change {
    // Of a name that the kernel does not know it would forget nothing: so the folder's entries as well.
    case .name(let name, let folder): [.name(name, in: kernelNumber(folder)), .content(kernelNumber(folder))]
    case .attributes(let number): [.attributes(kernelNumber(number))]
    case .content(let number):
      // Only who has opened it for writing can store to a page of it.
      writers.withLock { $0[number] != nil }
        ? [.content(kernelNumber(number)), .end(kernelNumber(number))] : [.content(kernelNumber(number))]
    }
  }
}
