internal import CFuse3
internal import CofferFiles
internal import CofferSystem
internal import Foundation
internal import Glibc
internal import Synchronization

/// What the kernel is to forget, or to learn, in its own numbers.
enum KernelChange: Hashable, Sendable {
  case name([UInt8], in: fuse_ino_t)
  /// To be asked for anew, while what the kernel has by it stays until then.
  case expiry([UInt8], in: fuse_ino_t)
  /// Where a folder lies by now.
  case place(of: fuse_ino_t)
  case attributes(fuse_ino_t)
  /// What is in a range of bytes.
  case content(fuse_ino_t, Range<UInt64> = 0..<UInt64.max)

  /// A file may end further behind than the kernel knows.
  case end(fuse_ino_t)

  var isOfName: Bool {
    switch self {
    case .name, .expiry: true
    default: false
    }
  }

  var isOfPlace: Bool {
    if case .place = self { true } else { false }
  }

  /// The node whose lock the kernel may take for it.
  var node: fuse_ino_t {
    switch self {
    case .name(_, let folder), .expiry(_, let folder): folder
    case .place(let node), .attributes(let node), .content(let node, _), .end(let node): node
    }
  }
}

/// The library's session, from its making to its end.
final class FuseSession: Sendable {
  private let lock = NSLock()
  /// While requests are answered.
  private let loop = Mutex<RequestLoop?>(nil)
  // Under `lock`.
  /// Set before the threads start, and nil again when the last has ended.
  private nonisolated(unsafe) var pointer: OpaquePointer?
  /// Threads that tell the kernel something, or answer it elsewhere: the session outlives them.
  private nonisolated(unsafe) var userCount = 0
  /// It is to be destroyed.
  private nonisolated(unsafe) var isEnding = false
  /// By which requests are answered, and which the library's functions are handed: until the session is destroyed.
  private nonisolated(unsafe) var server: MountServer?

  /// - Parameter server: what requests are answered by.
  func make(_ arguments: [String], _ operations: fuse_lowlevel_ops, for server: MountServer) throws(MountError) {
    // It would write paths to standard error.
    fuse_set_log_func { _, _, _ in }
    let texts = arguments.map { strdup($0) }
    defer { for text in texts { free(text) } }
    var pointers = texts + [nil]
    let count = CInt(texts.count)
    let made = pointers.withUnsafeMutableBufferPointer { pointers -> OpaquePointer? in
      var list = fuse_args(argc: count, argv: pointers.baseAddress, allocated: 0)
      var operations = operations
      let made = fuse_session_new(
        &list, &operations, MemoryLayout<fuse_lowlevel_ops>.size, Unmanaged.passUnretained(server).toOpaque())
      fuse_opt_free_args(&list)
      return made
    }
    guard let made else { throw .failed }
    lock.withLock {
      pointer = made
      self.server = server
    }
  }

  /// The system's number of the mount, where it can be told.
  ///
  /// - Parameter allowsOthers: whether that was among the arguments.
  func mount(at place: String, allowsOthers: Bool) throws(MountError) -> String? {
    guard let session = lock.withLock({ pointer }) else { throw .failed }
    do throws(MountError) {
      let folder = MountFolder.isNeeded ? try MountFolder(at: place) : nil
      return try Self.mount(session, at: place, on: folder)
    } catch {
      destroy()
      if access("/dev/fuse", F_OK) != 0 { throw .noDevice }
      if access("/dev/fuse", R_OK | W_OK) != 0 { throw .deviceRefused }
      guard access("/usr/bin/fusermount3", X_OK) == 0 else { throw .noHelper }
      throw allowsOthers && geteuid() != 0 ? .othersRefused : error
    }
  }

  private static func mount(
    _ session: OpaquePointer, at place: String, on folder: MountFolder?
  ) throws(MountError) -> String? {
    defer { withExtendedLifetime(folder) {} }
    guard fuse_session_mount(session, folder?.path ?? place) == 0 else { throw .failed }
    let device = folder.map(\.device) ?? Mounts.device(at: place)
    var channel = KernelChannel.operations
    if folder == nil || device != nil, fuse_session_custom_io(session, &channel, fuse_session_fd(session)) == 0 {
      return device
    }
    // By the same path: where that leads to a folder that is held, what lies on it goes, wherever it has been moved.
    fuse_session_unmount(session)
    throw .failed
  }

  /// Answers requests until the mount ends.
  ///
  /// - Parameters:
  ///   - keepsAwake: processors shall not halt while many requests come.
  ///   - server: whose requests they are.
  ///   - threads: ``threadCount`` of them, which help the calling one.
  ///   - idle: called before a thread sleeps.
  ///   - ended: called once or more often when no more requests come; some may still be answered.
  func serve(
    _ server: MountServer, on threads: ReservedThreads, keepsAwake: Bool, idle: @escaping @Sendable () -> Void,
    ended: @escaping @Sendable () -> Void
  ) {
    guard let session = lock.withLock({ pointer }) else {
      ended()
      return threads.dismiss()
    }
    // Not where the kernel could not be listened to any more.
    defer { if fuse_session_exited(session) != 0 { ended() } }
    let loop = RequestLoop(session, keepsAwake: keepsAwake, idle: idle, ended: ended)
    self.loop.withLock { $0 = loop }
    defer { self.loop.withLock { $0 = nil } }
    loop.run(on: threads) { work in MountServer.$answering.withValue(server, operation: work) }
  }

  /// Has another thread take requests, while the calling one answers one that may have to wait for them.
  func callAnother() { loop.withLock { $0 }?.call() }

  /// Begins to listen for what the kernel has said until now: what is given says, asked again and again, whether all of that has been heard.
  func hearing() -> () -> Bool {
    var hearing = loop.withLock { $0 }?.hearing()
    // When the mount has ended there is nothing to hear.
    return { [self] in loop.withLock { $0 } == nil || hearing?.isOver() ?? true }
  }

  /// Threads that answer requests.
  static let threadCount = max(4, 2 * ProcessInfo.processInfo.activeProcessorCount + 2)

  /// Ends the session: where threads still tell the kernel something, for which it may wait for a program, when they have.
  func destroy() {
    destroy(
      lock.withLock {
        isEnding = true
        return takeUnused()
      })
  }

  /// The process is about to end: the kernel fails what programs ask of a mount that it has not let go of when the process's files are
  /// closed, which a thread may hold up that waits for the kernel. So this one is closed by itself.
  func abandon() {
    guard let session = keep() else { return }
    defer { letGo() }
    _ = Self.closeDevice(of: session)
  }

  /// Puts something else in the place of the kernel's device, for threads may be about to use its number: what the library takes for a
  /// connection that has ended. `false` where it would not.
  private static func closeDevice(of session: OpaquePointer) -> Bool {
    let descriptor = fuse_session_fd(session)
    var ends: [CInt] = [-1, -1]
    guard descriptor >= 0, pipe(&ends) == 0 else { return false }
    // A pipe that nobody reads: it polls as an error, and cannot be read from.
    close(ends[0])
    defer { close(ends[1]) }
    guard dup2(ends[1], descriptor) == descriptor else { return false }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    // Another thread may have started a program meanwhile, which has the other end.
    var found = pollfd(fd: descriptor, events: 0, revents: 0)
    return poll(&found, 1, 0) == 1 && found.revents & Int16(POLLERR) != 0
  }

  private func destroy(_ session: OpaquePointer?) {
    guard let session else { return }
    // It would take down whatever is mounted at that place by now; it takes down nothing where the connection has ended.
    if Self.closeDevice(of: session) { fuse_session_unmount(session) }
    fuse_session_destroy(session)
    // What goes with it goes outside the lock.
    let former = lock.withLock {
      defer { server = nil }
      return server
    }
    withExtendedLifetime(former) {}
  }

  /// What nobody uses any more, nor will. Under `lock`.
  private func takeUnused() -> OpaquePointer? {
    guard isEnding, userCount == 0 else { return nil }
    defer { pointer = nil }
    return pointer
  }

  /// Runs `body`, which answers a request, on a thread of its own, and keeps the session until that is done. Throws where there
  /// is no thread. Called while the request is unanswered, so that there is a session.
  func whileKept(_ body: @escaping @Sendable () -> Void) throws(SystemError) {
    guard keep() != nil else { return }
    do {
      try NewThread.start { [self] in
        defer { letGo() }
        body()
      }
    } catch {
      letGo()
      throw error
    }
  }

  /// The session, which is not destroyed until ``letGo()``; nil where it is already, or is to be.
  private func keep() -> OpaquePointer? {
    lock.withLock {
      if isEnding { return nil }
      if pointer != nil { userCount += 1 }
      return pointer
    }
  }

  private func letGo() {
    destroy(
      lock.withLock {
        userCount -= 1
        return takeUnused()
      })
  }

  /// By what requests are answered; nil before there are any, and at the end.
  var present: MountServer? { lock.withLock { server } }

  /// Tells the kernel; `false` where it knows no such node or name. **Never from a thread that answers a request**: the kernel
  /// may wait for that answer first.
  ///
  /// - Parameter lastByte: of a file whose end the kernel is told, and where it lies; nil where it has none, or nobody may know it.
  @discardableResult
  func tell(_ change: KernelChange, lastByte: (InodeNumber) -> (offset: UInt64, value: UInt8)? = { _ in nil }) -> Bool {
    guard let session = keep() else { return true }
    defer { letGo() }
    let outcome =
      switch change {
      case .name(let name, let folder): forget(name, folder, session)
      case .expiry(let name, let folder): expire(name, folder, session)
      case .attributes(let number): fuse_lowlevel_notify_inval_inode(session, number, -1, 0)
      case .content(let number, let range):
        // With no count to the end.
        fuse_lowlevel_notify_inval_inode(
          session, number, off_t(clamping: range.lowerBound),
          range.upperBound > UInt64(Int64.max) ? 0 : off_t(range.upperBound - range.lowerBound))
      // There is no such call: see ``MountServer/showPlace(of:)``.
      case .place: CInt(0)
      case .end(let number): tellEnd(of: number, lastByte(InodeNumber(value: number)), session)
      }
    return outcome != -ENOENT
  }

  private func forget(_ name: [UInt8], _ folder: fuse_ino_t, _ session: OpaquePointer) -> CInt {
    name.withUnsafeBytes { bytes in
      fuse_lowlevel_notify_inval_entry(session, folder, bytes.bindMemory(to: CChar.self).baseAddress, bytes.count)
    }
  }

  private func expire(_ name: [UInt8], _ folder: fuse_ino_t, _ session: OpaquePointer) -> CInt {
    let outcome = name.withUnsafeBytes { bytes in
      coffer_expire_entry(session, folder, bytes.bindMemory(to: CChar.self).baseAddress, bytes.count)
    }
    return outcome == -ENOSYS ? forget(name, folder, session) : outcome
  }

  /// The kernel takes a file to end where it was told so last, until somebody asks. It clears what lies behind that in a page that it
  /// writes back, and would bring back zeros once it knows the end. What it is given raises its end at once; and what it may have
  /// cleared before that it reads anew.
  private func tellEnd(
    of number: fuse_ino_t, _ lastByte: (offset: UInt64, value: UInt8)?, _ session: OpaquePointer
  ) -> CInt {
    guard let (offset, lastByte) = lastByte else { return 0 }
    var value = lastByte
    let outcome = withUnsafeMutableBytes(of: &value) { bytes in
      var part = fuse_bufvec()
      part.count = 1
      part.buf.size = 1
      part.buf.mem = bytes.baseAddress
      return fuse_lowlevel_notify_store(session, number, off_t(clamping: offset), &part, fuse_buf_copy_flags(0))
    }
    return outcome == 0 ? fuse_lowlevel_notify_inval_inode(session, number, 0, 0) : outcome
  }
}
