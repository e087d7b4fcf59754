internal import CFuse3
internal import CofferSystem
internal import Glibc
internal import Synchronization

/// Keeps the processor that a waiting program has left from halting, where the kernel cannot be asked to (``AwakeProcessors``): for a
/// user who is not root, and in a guest without a driver for that.
///
/// To bring such a processor back takes longer than most answers do. So when a request is taken, and beside the work on it, a thread
/// is woken that only turns: on the processor that is idle, which is the program's. The kernel gives it what nobody else wants
/// (`SCHED_IDLE`): who is woken there runs at once, as on an idle processor. It turns until some time after the answer, because the next
/// request is often there by then, and meanwhile finds the processor of whoever sleeps, the program or who answers it; as long as
/// the kernel's own driver waits in a guest by default, before it halts (`guest_halt_poll_ns`).
///
/// With two processors. Among more of them it would turn where nobody is missed.
final class IdleSpinner: @unchecked Sendable {
  /// For so long from the last request or answer it turns, in nanoseconds.
  static let time: UInt64 = 200_000

  /// So many requests in a row that come later than that after the answer before, and it turns no more until one does not: it would
  /// take a processor for less and less.
  static let apartLimit = 3

  private let now: @Sendable () -> UInt64
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
  /// Until when it turns, by `now`.
  private let end = Atomic<UInt64>(0)
  private let sleeps = Atomic(false)
  private let isStopped = Atomic(false)
  // Of whichever thread was last.
  private let lastAnswer = Atomic<UInt64>(0)
  private let apartCount = Atomic(0)

  /// Whether one is of use to a mount on this machine.
  static var isOfUse: Bool {
    isOfUse(
      IdleDriver.present, mayAskKernel: AwakeProcessors.mayBeKept,
      processorCount: Int(sysconf(CInt(_SC_NPROCESSORS_ONLN))))
  }

  static func isOfUse(_ driver: IdleDriver, mayAskKernel: Bool, processorCount: Int) -> Bool {
    guard processorCount == 2 else { return false }
    return switch driver {
    case .haltsAtOnce: !mayAskKernel
    case .missing: true
    case .other: false
    }
  }

  /// - Parameter now: nanoseconds of a clock that nobody sets.
  init(now: @escaping @Sendable () -> UInt64) {
    self.now = now
    sem_init(semaphore, 0, 0)
  }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  /// Throws where the system gives no thread. Where it does not let the thread step back behind all others, nothing is done.
  func start() throws(SystemError) {
    try NewThread.start { [self] in
      var parameters = sched_param(sched_priority: 0)
      guard sched_setscheduler(0, Self.idleClass, &parameters) == 0 else { return }
      while !isStopped.load(ordering: .acquiring) {
        sleeps.store(true, ordering: .sequentiallyConsistent)
        let isOver = now() >= end.load(ordering: .sequentiallyConsistent)
        // Whoever takes the flag wakes it.
        if isOver || !sleeps.exchange(false, ordering: .sequentiallyConsistent) { sem_wait(semaphore) }
        while now() < end.load(ordering: .relaxed) { for _ in 0..<Self.pauses { coffer_relax() } }
      }
    }
  }

  /// `SCHED_IDLE` of sched(7), a macro that is not imported.
  static let idleClass: CInt = 5
  /// Between two looks at the clock: some tenths of a microsecond.
  private static let pauses = 16

  /// A request was taken for which somebody waits.
  ///
  /// - Parameter moment: when, by its clock.
  func didTake(at moment: UInt64) {
    let isApart = moment > lastAnswer.load(ordering: .relaxed) + Self.time
    let count = isApart ? apartCount.load(ordering: .relaxed) + 1 : 0
    apartCount.store(count, ordering: .relaxed)
    if count < Self.apartLimit { turn(from: moment) }
  }

  /// It was answered.
  func didAnswer(at moment: UInt64) {
    lastAnswer.store(moment, ordering: .relaxed)
    if apartCount.load(ordering: .relaxed) < Self.apartLimit { turn(from: moment) }
  }

  private func turn(from moment: UInt64) {
    end.store(moment + Self.time, ordering: .sequentiallyConsistent)
    if sleeps.load(ordering: .sequentiallyConsistent), sleeps.exchange(false, ordering: .sequentiallyConsistent) {
      sem_post(semaphore)
    }
  }

  /// Ends the thread, soon.
  func stop() {
    isStopped.store(true, ordering: .releasing)
    end.store(0, ordering: .sequentiallyConsistent)
    sem_post(semaphore)
  }

  /// For tests.
  var isSleeping: Bool { sleeps.load(ordering: .sequentiallyConsistent) }
}
