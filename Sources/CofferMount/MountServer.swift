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
  /// As of ``Mounts/device(at:)``; nil until it is mounted.
  let device = Mutex<String?>(nil)
  let changes: ChangeQueue
  let handshake = Handshake()
  let buffers = AnswerBuffers()
  let nodes = KernelNodes()
  let openFiles = OpenFiles()
  let closing: ClosingFiles<ViewFile>
  let foldersAhead: FoldersAhead
  /// Folders whose entries others have changed since the kernel last asked.
  let changedFolders = Mutex<Set<InodeNumber>>([])
  let lookups = FolderLookups()
  /// Where others have said that they moved folders, until the kernel has come upon them.
  let movedFolders = Mutex<[InodeNumber: FolderPlace]>([:])
  let didEnd: @Sendable (MountServer) -> Void
  let phase = MountPhase()
  /// What kept the last of what programs wrote from being stored, when the mount ended.
  let failure = Mutex<ViewError?>(nil)
  /// Whether something is lost that programs had stored to mappings.
  public let loss = UntoldLoss()
  /// Programs that used it when it was ended all the same.
  let cutOffUsers = Mutex((place: "", users: MountUsers()))
  let elsewhere = Mutex(Elsewhere.nowhere)
  let detachedBelow = Mutex<[String]>([])
  /// The kernel was told to forget everything when nothing passed any more.
  let hasDroppedAll = Atomic(false)
  /// Nobody asks any more.
  let hasKernelLetGo = Atomic(false)
  /// Threads that wait until a kernel has been told.
  let waiterCount = Atomic(0)
  let writers = FileWriters()
  let pastPages = WritesPastPages()
  let observations = Mutex<[ContainerObservation]>([])

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
    do throws(MountError) {
      let mounted = try session.mount(at: place, allowsOthers: settings.allowsOthers)
      device.withLock { $0 = mounted }
    } catch {
      defer { phase.set(.ended) }
      // The helper that mounts for who is not root is a process more.
      if error == .failed, (try? NewThread.start {}) == nil { throw .noThread }
      throw error
    }
    view.hold {
      [nodes, root = view.root] in
      $0 == root || nodes.isKnown($0)
    } hearing: { [session, closing] in
      let hasHeard = session.hearing()
      var areClosed: (() -> Bool)?
      return {
        if areClosed == nil, hasHeard() { areClosed = closing.closing() }
        return areClosed?() ?? false
      }
    }
    observations.withLock { observations in
      observations = [
        view.observeChanges { [weak self] found in
          self?.didChange(found)
        },
        view.observeLocking { [weak self] in self?.dropContent() },
      ]
    }
    phase.set(.mounted)
    if phase.wait(until: { $0 == .live || $0 == .ended }) == .ended { throw .failed }
    if let device = device.withLock({ $0 }) { Mounts.setReadAhead(at: place, of: device) }
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

  /// Returns when the system has made the mount, or refused it: `false` for that.
  private func waitForMount() -> Bool { phase.wait { $0 != .starting } == .mounted }

  /// The kernel has said hello.
  func didBecomeLive() { phase.set(.live) }

  /// Runs `body`, which adds something; again where it finds the disk full while files are not let go of yet that programs have closed
  /// and removed, or the kernel has not let go of what they have removed; and as long as something of that goes.
  func withRoom<Result>(_ body: () throws -> Result) throws -> Result {
    let end = SuspendingClock.now + Self.roomTime
    for round in 0..<Self.roomLimit {
      let removalCount = view.removalCount
      do {
        return try body()
      } catch ViewError.full
        where view.removalCount != removalCount || round == 0 && (closing.isBusy || view.hasUnsettledRemovals)
      {
        session.callAnother()
        closing.finish()
        waiting { view.settleRemovals(until: end) }
      }
    }
    return try body()
  }

  /// How often it may be tried again at most.
  private static let roomLimit = 8
  /// How long it is waited for, in all, where something holds that up.
  private static let roomTime = Duration.seconds(5)
  /// The same for who only asks: a mount that answers this no sooner is taken for one that answers nobody (``Mounts/server(at:)``).
  private static let askingTime = Duration.milliseconds(500)

  /// The room on the vault's disk. Where little is left, with what the kernel is about to let go of.
  func space() throws -> FileSystemSpace {
    let space = try view.space()
    guard view.mayGainRoom else { return space }
    waiting { view.settleRemovals(until: .now + Self.askingTime) }
    return try view.space()
  }
}
