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
/// also keeps what is written for a while; fsync(2), close(2) and the end of the mount bring that into the vault.
public final class MountServer: Sendable {
  public let view: ContainerView
  /// The mount point, as a canonical path.
  public let place: String
  let session = FuseSession()
  let handshake = Handshake()
  let buffers = AnswerBuffers()
  /// Of a mount in which nothing is written the kernel believes every size that it is told, and nothing has to be known.
  private let places: KnownPlaces?
  private let didEnd: @Sendable (MountServer) -> Void
  private let phase = Mutex(Phase.starting)
  private let phaseChanged = NSCondition()
  /// Files whose content the kernel may keep.
  private let opened = Mutex<Set<InodeNumber>>([])
  private let observations = Mutex<[ContainerObservation]>([])

  private enum Phase { case starting, live, ended }

  /// Mounts `view`, and returns when programs can use it.
  ///
  /// - Parameters:
  ///   - place: an empty folder, as a canonical path.
  ///   - allowsOthers: other users see the mount as well, as far as permissions let them.
  ///   - didEnd: called on a thread of the mount's when it has ended, whoever ended it.
  /// Throws ``MountError``.
  public static func mount(
    _ view: ContainerView, at place: String, allowsOthers: Bool, didEnd: @escaping @Sendable (MountServer) -> Void
  ) throws(MountError) -> MountServer {
    let server = MountServer(view, place, didEnd)
    try server.start(allowsOthers: allowsOthers)
    return server
  }

  private init(_ view: ContainerView, _ place: String, _ didEnd: @escaping @Sendable (MountServer) -> Void) {
    self.view = view
    self.place = place
    self.didEnd = didEnd
    places = view.isReadOnly ? nil : KnownPlaces()
  }

  private func start(allowsOthers: Bool) throws(MountError) {
    // Nothing that is stored in a vault shall get privileges by being mounted.
    var settings = "fsname=coffer,subtype=coffer,default_permissions,nosuid,nodev"
    if view.isReadOnly { settings += ",ro" }
    if allowsOthers { settings += ",allow_other" }
    try session.make(["coffer", "-o", settings], Self.operations, for: self)
    try session.mount(at: place)
    let changes = ChangeQueue { [session] change in session.tell(change) }
    observations.withLock { observations in
      observations = [
        view.observeChanges { [weak self] found in
          guard let self else { return }
          changes.add(found.flatMap(toKernel), isWaiting: !ContainerView.isWorkingHere)
        },
        view.observeLocking { [weak self] in self?.dropContent() },
      ]
    }
    // The threads keep the server until the mount has ended.
    let thread = Thread { [self] in
      session.serve()
      changes.end()
      finish()
    }
    thread.name = "coffer mount"
    thread.start()
    phaseChanged.withLock { while phase.withLock({ $0 }) == .starting { phaseChanged.wait() } }
    if phase.withLock({ $0 }) == .ended { throw .failed }
    Mounts.setReadAhead(at: place)
  }

  private func set(_ new: Phase) {
    phaseChanged.withLock {
      phase.withLock { $0 = new }
      phaseChanged.broadcast()
    }
  }

  /// The kernel has said hello.
  func didBecomeLive() { set(.live) }

  private func finish() {
    observations.withLock { $0 = [] }
    view.end()
    // What the kernel gave back last.
    try? view.commitAll()
    session.destroy()
    set(.ended)
    didEnd(self)
  }

  public var hasEnded: Bool { phase.withLock { $0 } == .ended }

  /// Waits until the mount has ended.
  public func waitForEnd() { phaseChanged.withLock { while !hasEnded { phaseChanged.wait() } } }

  /// Waits until the mount has ended, or somebody wants something else; `false` for that. Looks twice a second.
  public func waitForEnd(orUntil isWanted: () -> Bool) -> Bool {
    phaseChanged.withLock {
      while !hasEnded {
        if isWanted() { return false }
        _ = phaseChanged.wait(until: Date(timeIntervalSinceNow: 0.5))
      }
      return true
    }
  }

  /// Ends the mount. Throws ``MountError/busy`` where programs use it, unless `isForced`: then what they wrote is brought
  /// into the vault, and nothing passes any more.
  public func end(isForced: Bool) throws(MountError) {
    do {
      try Mounts.unmount(place, isLazy: false)
      waitForEnd()
    } catch {
      guard isForced, error == .busy else { throw error }
      dropContent()
      view.end()
      try Mounts.unmount(place, isLazy: true)
      try? view.commitAll()
    }
  }

  // MARK: What the kernel keeps

  func didOpen(_ number: InodeNumber) { opened.withLock { _ = $0.insert(number) } }
  func didForget(_ number: InodeNumber) { opened.withLock { _ = $0.remove(number) } }

  /// Lets the kernel write back what it has of files, and forget it, also where a program has it mapped.
  private func dropContent() {
    for number in opened.withLock({ $0 }) { session.tell(.content(kernelNumber(number))) }
    buffers.overwriteAll()
  }

  /// The kernel was told of a file under this name.
  func didName(_ number: InodeNumber, _ name: [UInt8], in folder: InodeNumber) {
    places?.remember(number, as: name, in: folder)
  }

  private func toKernel(_ change: ViewChange) -> [KernelChange] {
    switch change {
    case .name(let name, let folder): [.name(name, in: kernelNumber(folder))]
    case .attributes(let number): [.attributes(kernelNumber(number))]
    case .content(let number): [.content(kernelNumber(number))] + forgettingSize(of: number)
    }
  }

  /// What makes the kernel forget the size that it keeps of a file: its name, or where that is not known, all names. A file
  /// that a program has open here keeps its size until it is opened anew.
  private func forgettingSize(of number: InodeNumber) -> [KernelChange] {
    guard let places else { return [] }
    if let place = places[number] { return [.name(place.name, in: kernelNumber(place.folder))] }
    var names: [KernelChange] = []
    var cookie: UInt64?
    while let found = try? view.readFolder(view.root, after: cookie, limit: 512, withAttributes: false),
      let last = found.last
    {
      names += found.map { .name($0.name, in: fuse_ino_t(FUSE_ROOT_ID)) }
      cookie = last.cookie
    }
    return names
  }
}

extension MountServer {
  private static let operations: fuse_lowlevel_ops = {
    var operations = fuse_lowlevel_ops()
    operations.`init` = { data, connection in
      guard let data, let connection else { return }
      let server = Unmanaged<MountServer>.fromOpaque(data).takeUnretainedValue()
      server.configure(&connection.pointee)
      server.didBecomeLive()
    }
    operations.forget = { request, number, _ in
      guard let request, let data = fuse_req_userdata(request) else { return }
      let server = Unmanaged<MountServer>.fromOpaque(data).takeUnretainedValue()
      server.didForget(server.number(number))
      fuse_reply_none(request)
    }
    setNameOperations(&operations)
    setAttributeOperations(&operations)
    setFolderOperations(&operations)
    setContentOperations(&operations)
    return operations
  }()

  /// What the kernel may do by itself. Locks of files are not asked for: it keeps them, for there is no other machine.
  private func configure(_ connection: inout fuse_conn_info) {
    let wanted =
      (view.isReadOnly ? 0 : FUSE_CAP_WRITEBACK_CACHE) | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS
      | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_NO_OPENDIR_SUPPORT
      | FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO
    // Pages stay until they are declared void, whatever the times say; locks stay with the kernel; a buffer is written to
    // and read from, without pipes between; and of clearing bits, see KernelChannel.
    let unwanted =
      FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_SPLICE_READ
      | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | FUSE_CAP_HANDLE_KILLPRIV
    connection.want |= UInt32(wanted) & connection.capable
    connection.want &= ~UInt32(unwanted)
    connection.max_background = 64
    connection.congestion_threshold = 48
    connection.time_gran = 1
  }
}
