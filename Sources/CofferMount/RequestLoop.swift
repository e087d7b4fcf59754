internal import CFuse3
internal import CofferSystem
internal import Foundation
internal import Glibc
internal import Synchronization

/// The threads that take the kernel's requests and answer them.
///
/// To wake a thread costs as much as to answer a small request. So one thread alone waits for requests, and it answers the
/// small ones itself. It wakes another before one that takes long, and where those of several programs keep waiting. Before
/// it sleeps it looks for the next request for a while, for a program that walks a tree asks again within microseconds, as
/// long as that finds any.
///
/// An answer may have to wait, perhaps for what another request brings, or for a slow disk. So while requests come, a thread that takes
/// none looks from time to time whether they are still taken, and wakes another where they are not. Where none is left, because all wait,
/// it starts one more: programs that sync keep nobody from reading. It also sees to it that those that answer keep off the processor of the
/// program that asks (``AnsweringProcessor``).
final class RequestLoop: @unchecked Sendable {
  private let session: OpaquePointer
  private let keepsAwake: Bool
  private let didIdle: @Sendable () -> Void
  private let didEnd: @Sendable () -> Void
  /// With two processors the program that asks needs the one on which another thread would read or write.
  private let helpsWithLarge = ProcessInfo.processInfo.activeProcessorCount > 2
  private let descriptor: CInt
  /// A thread waits for the next request.
  private let isWaiting = Atomic(false)
  private let takenCount = Atomic(0)
  private let turns = Turns()
  /// Of the thread that waits.
  private nonisolated(unsafe) var looking = Looking()
  /// How long the last sync took, in nanoseconds.
  private let syncTime = Atomic<UInt64>(0)

  private let condition = NSCondition()
  // Under `condition`.
  private var idleCount = 0
  /// Idle threads that are to look for requests, and do not know it yet.
  private var calledCount = 0
  private var hasEnded = false
  /// Threads beside those that were reserved.
  private var spareCount = 0
  /// The last of them has not begun yet.
  private var isSpareComing = false

  /// Requests come: nobody sleeps until the next.
  private let isBusy = Atomic(false)
  private let watch = NSCondition()
  /// Under `watch`.
  private var isWatching = false
  /// Where it is of use.
  private let spinner: IdleSpinner?
  private let processor: AnsweringProcessor?

  /// How long to look for the next request, in nanoseconds: a few times what a program needs between two.
  private static let lookingTime: UInt64 = 30_000
  /// Between two tries, some tenths of a microsecond in all: each takes the lock under which programs hand over their requests.
  private static let lookingPauses = 8
  /// What takes as long is not waited for, in nanoseconds.
  private static let longTime: UInt64 = 1_000_000
  /// How many threads there may be beside those that were reserved.
  static let spareLimit = 64
  /// How often to look whether requests are taken, in microseconds.
  private static let watchingTime: UInt32 = 2000
  /// So many requests between two looks are worth processors that stay awake, which they do for a while after, in
  /// nanoseconds.
  private static let awakeCount = 8
  private static let awakeTime: UInt64 = 50_000_000

  /// - Parameters:
  ///   - session: of the library, mounted. It must outlive the loop.
  ///   - keepsAwake: while many requests come, processors that are idle shall not halt.
  ///   - idle: called before a thread sleeps.
  ///   - ended: called when no more requests come, by each thread.
  init(
    _ session: OpaquePointer, keepsAwake: Bool, idle: @escaping @Sendable () -> Void,
    ended: @escaping @Sendable () -> Void
  ) {
    self.session = session
    self.keepsAwake = keepsAwake
    didIdle = idle
    didEnd = ended
    spinner = keepsAwake ? IdleSpinner.taken { Self.now } : nil
    processor = keepsAwake ? AnsweringProcessor.present() : nil
    descriptor = fuse_session_fd(session)
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
  }

  /// Answers requests until the mount ends, on the calling thread and on those that were reserved, each within `thread`.
  ///
  /// - Parameter threads: ``FuseSession/threadCount`` of them; one answers nothing, and looks after the others.
  func run(on threads: ReservedThreads, within thread: @escaping @Sendable (() -> Void) -> Void) {
    let answering = [@Sendable () -> Void](repeating: { [self] in thread(work) }, count: FuseSession.threadCount - 1)
    threads.run([{ [self] in watchRequests { [self] in thread(workAsSpare) } }] + answering)
    defer { if spinner != nil { IdleSpinner.giveBack() } }
    thread(work)
    threads.wait()
    condition.withLock { while spareCount > 0 { condition.wait() } }
  }

  /// Begins to listen for what the kernel has said until now.
  func hearing() -> Hearing {
    Hearing(turns) { [self] in
      !isReady(within: 0)
    } takenCount: { [self] in
      takenCount.load(ordering: .relaxed)
    }
  }

  private func work() {
    answerRequests(isSpare: false)
    condition.withLock {
      hasEnded = true
      condition.broadcast()
    }
    watch.withLock { watch.broadcast() }
  }

  private func workAsSpare() {
    condition.withLock { isSpareComing = false }
    answerRequests(isSpare: true)
  }

  /// Until the mount ends. A spare thread only until another waits for requests.
  private func answerRequests(isSpare: Bool) {
    let turn = turns.add()
    defer { turns.remove(turn) }
    Turn.$own.withValue(turn) { answerRequests(in: turn, isSpare: isSpare) }
  }

  private func answerRequests(in turn: Turn, isSpare: Bool) {
    var request = fuse_buf()
    defer { free(request.mem) }
    var backlog = Backlog()
    var thread = AnsweringProcessor.KeptThread()
    defer { if let processor { thread.leave(processor) } }
    while let taken = take(&request, in: turn, on: &thread, isSpare: isSpare) {
      defer { turn.end() }
      takenCount.wrappingAdd(1, ordering: .relaxed)
      let kind = kind(of: request)
      let isSlow = kind == .sync && syncTime.load(ordering: .relaxed) > Self.longTime
      let header = KernelRequest(request)
      let requester = header?.requester ?? 0
      // The kernel reads ahead in a program's name, which goes on meanwhile.
      let isWaitedFor = requester != 0 && header?.operation != .read && header?.operation != .write
      let start = Self.now
      // Nobody waits for what the kernel asks by itself, and what moves much takes longer than waking does: there a thread that turns would
      // only slow the processor down that shares its core.
      let spinner = requester != 0 && (kind == .small || kind == .sync) ? self.spinner : nil
      spinner?.didTake(at: start)
      if isWaitedFor { processor?.didTake(from: requester) }
      let isBacklog = backlog.isLong(
        with: requester,
        hasWaited: (kind == .small || kind == .large) && taken == .itWaited)
      if isBacklog || kind == .long || (kind == .large && helpsWithLarge) || isSlow { call() }
      let answer = { [session] in UntoldDetails.keeping(request) { fuse_session_process_buf(session, &request) } }
      if kind == .sync || kind == .long { turn.pausing(answer) } else { answer() }
      let end = Self.now
      spinner?.didAnswer(at: end)
      if kind == .sync { syncTime.store(end - start, ordering: .relaxed) }
    }
    // Not where this thread alone got nothing any more.
    if fuse_session_exited(session) != 0 { didEnd() }
  }

  private enum Taken { case itWaited, weWaited }

  /// Waits for a request, whose turn the caller ends; nil when the mount has ended, or a spare thread is not needed any more.
  private func take(
    _ request: inout fuse_buf, in turn: Turn, on thread: inout AnsweringProcessor.KeptThread, isSpare: Bool
  ) -> Taken? {
    if let processor, !isSpare { thread.follow(processor) }
    if let isTaken = takeNow(&request, in: turn) { return isTaken ? .itWaited : nil }
    while true {
      guard !isWaiting.exchange(true, ordering: .acquiringAndReleasing) else {
        didIdle()
        if let processor { thread.leave(processor) }
        guard !isSpare, idle() else { return nil }
        if let isTaken = takeNow(&request, in: turn) { return isTaken ? .weWaited : nil }
        continue
      }
      defer { isWaiting.store(false, ordering: .releasing) }
      if looking.isWorthwhile() {
        let end = Self.now + Self.lookingTime
        while Self.now < end {
          guard let isTaken = takeNow(&request, in: turn) else {
            for _ in 0..<Self.lookingPauses { coffer_relax() }
            continue
          }
          looking.didFind()
          return isTaken ? .weWaited : nil
        }
        looking.didMiss()
      }
      isBusy.store(false, ordering: .releasing)
      didIdle()
      _ = isReady(within: -1)
      isBusy.store(true, ordering: .releasing)
      watch.withLock { if !isWatching { watch.signal() } }
      if let isTaken = takeNow(&request, in: turn) { return isTaken ? .weWaited : nil }
    }
  }

  /// Whether a request was taken; nil where there is none. `false` when the mount has ended.
  private func takeNow(_ request: inout fuse_buf, in turn: Turn) -> Bool? {
    turn.begin()
    let count = fuse_session_receive_buf(session, &request)
    if count > 0 { return true }
    turn.end()
    if count == -EAGAIN || count == -EINTR { return fuse_session_exited(session) == 0 ? nil : false }
    return false
  }

  /// Whether there is a request that nobody has taken.
  ///
  /// - Parameter time: how long to wait for one, in milliseconds; negative where until there is one.
  private func isReady(within time: CInt) -> Bool {
    var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return Glibc.poll(&poll, 1, time) > 0 && poll.revents & Int16(POLLIN) != 0
  }

  /// Wakes an idle thread, if there is one.
  ///
  /// - Returns: whether one comes, perhaps one that was called before.
  @discardableResult
  func call() -> Bool {
    condition.lock()
    defer { condition.unlock() }
    guard idleCount > calledCount else { return calledCount > 0 }
    calledCount += 1
    condition.signal()
    return true
  }

  /// Starts a thread that answers as long as the others are busy.
  private func callSpare(_ work: @escaping @Sendable () -> Void) {
    let mayStart = condition.withLock {
      guard spareCount < Self.spareLimit, !isSpareComing, !hasEnded else { return false }
      spareCount += 1
      isSpareComing = true
      return true
    }
    guard mayStart else { return }
    let end: @Sendable () -> Void = { [self] in
      condition.withLock {
        spareCount -= 1
        isSpareComing = false
        condition.broadcast()
      }
    }
    // Where the system gives none, who is busy goes on with what waits.
    do {
      try NewThread.start {
        work()
        end()
      }
    } catch { end() }
  }

  /// Waits until it is called; `false` when the mount has ended.
  private func idle() -> Bool {
    condition.lock()
    defer { condition.unlock() }
    idleCount += 1
    defer { idleCount -= 1 }
    while calledCount == 0, !hasEnded { condition.wait() }
    if hasEnded { return false }
    calledCount -= 1
    return true
  }

  /// - Parameter spare: what a thread does that is started because none is left.
  private func watchRequests(spare: @escaping @Sendable () -> Void) {
    var processors = AwakeProcessors(isWanted: keepsAwake)
    defer { processors.release() }
    /// Until when processors stay awake, by `now`.
    var end: UInt64 = 0
    var taken = 0
    let runnable = processor.flatMap { _ in RunnableThreads() }
    var crowd = Crowd()
    defer { processor?.giveUp() }
    while !condition.withLock({ hasEnded }) {
      let before = takenCount.load(ordering: .relaxed)
      let isBusy = waitWhileWatching(goesOn: taken > 0 || processors.areKept)
      taken = takenCount.load(ordering: .relaxed) - before
      if isBusy, taken == 0, !isWaiting.load(ordering: .acquiring), !call(), isReady(within: 0) { callSpare(spare) }
      if taken >= Self.awakeCount {
        end = Self.now + Self.awakeTime
        processors.keep()
      } else if Self.now >= end {
        processors.release()
      }
      guard let processor else { continue }
      // Beside this thread.
      if let count = runnable?.count { crowd.look(at: count - 1) }
      // Who was woken for a request, and does not come to it, may be behind somebody who leaves that processor to nobody.
      let isOfUse = processors.areKept && !crowd.isThere && (taken > 0 || !isReady(within: 0))
      if isOfUse { processor.askForLook() } else { processor.giveUp() }
    }
  }

  /// Waits for the time between two looks while requests come, and else until they do again. Whether somebody was at one when it
  /// began.
  ///
  /// - Parameter goesOn: some have come since the last look, or processors are kept awake. To be woken for each of those that come
  ///   apart would cost who answers them more than the looks do.
  private func waitWhileWatching(goesOn: Bool) -> Bool {
    watch.lock()
    defer { watch.unlock() }
    if condition.withLock({ hasEnded }) { return false }
    let isBusy = isBusy.load(ordering: .acquiring)
    isWatching = isBusy || goesOn
    guard isWatching else {
      watch.wait()
      return isBusy
    }
    // Nobody wakes it meanwhile. By a clock that nobody sets: set back, the other one would hold up the look.
    watch.unlock()
    usleep(Self.watchingTime)
    watch.lock()
    return isBusy
  }

  /// Nanoseconds of a clock that nobody sets.
  private static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  private enum Kind { case small, large, long, sync }

  /// Whether the answer takes much longer than waking a thread. A sync does where the last one did: it depends on the disk.
  private func kind(of request: fuse_buf) -> Kind {
    guard let header = KernelRequest(request) else { return .small }
    switch header.operation {
    case .read: return header.readByteCount >= Self.largeByteCount ? .large : .small
    case .write: return request.size >= Self.largeByteCount ? .large : .small
    case .fallocate, .copyFileRange: return .long
    case .fsync, .fsyncdir: return .sync
    default: return .small
    }
  }

  private static let largeByteCount = 64 << 10
}
