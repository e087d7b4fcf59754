internal import CFuse3
internal import CofferSystem
internal import Glibc
internal import Synchronization

/// Keeps the processor that a waiting program has left from halting, where the kernel cannot be asked to (``AwakeProcessors``): for a
/// user who is not root.
///
/// To bring such a processor back takes longer than most answers do. So when a request is taken, and beside the work on it, a thread
/// is woken that only turns: on the processor that is idle, which is the program's. It steps back behind all other threads of the process
/// (`SCHED_IDLE`): who is woken there runs at once, as on an idle processor. It turns until some time after the answer, because the next
/// request is often there by then, and meanwhile finds the processor of whoever sleeps, the program or who answers it; as long as
/// the kernel's own driver waits in a guest by default, before it halts (`guest_halt_poll_ns`).
///
/// Where the kernel divides the processors among sessions, or among groups of processes, the class counts within these alone, and
/// a thread that turned beside somebody who computes would get as much as they. So it looks whether anybody else is
/// runnable while a program waits, and where there always is somebody, no processor is idle, and it leaves it be.
///
/// With two processors. Among more of them it would turn where nobody is missed. One does for all mounts of a process.
final class IdleSpinner: @unchecked Sendable {
  /// For so long from the last request or answer it turns, in nanoseconds.
  static let time: UInt64 = 200_000

  /// What a request that comes later than that after the answer before counts, beside one that does not: where so few come
  /// at a time, it would turn for longer than the program runs.
  static let apartWeight = 4
  /// From here on it does not turn, and no more is counted than the other.
  static let apartLimit = 8
  static let apartMost = 12

  /// Between two looks at who is runnable, in nanoseconds; and so many in a row that find somebody are one too many.
  static let lookTime: UInt64 = 500_000
  static let crowdLimit = 8
  /// How long it does not turn then, the first time and at most, in nanoseconds.
  static let pauseTime: (first: UInt64, most: UInt64) = (50_000_000, 800_000_000)

  private let now: @Sendable () -> UInt64
  private let isCrowded: @Sendable () -> Bool
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
  /// Until when it turns, by `now`.
  private let end = Atomic<UInt64>(0)
  /// Before then it does not turn.
  private let pauseEnd = Atomic<UInt64>(0)
  private let sleeps = Atomic(false)
  private let isStopped = Atomic(false)
  // Of whichever thread was last.
  private let isAnswering = Atomic(false)
  private let lastAnswer = Atomic<UInt64>(0)
  private let apartCount = Atomic(0)
  // Of the thread that turns.
  private var lastLook: UInt64 = 0
  private var crowdCount = 0
  private var pause = IdleSpinner.pauseTime.first

  /// - Parameters:
  ///   - now: nanoseconds of a clock that nobody sets.
  ///   - isCrowded: whether as many threads are runnable as there are processors, beside the one that turns, which asks.
  init(
    now: @escaping @Sendable () -> UInt64, isCrowded: @escaping @Sendable () -> Bool = { false }
  ) {
    (self.now, self.isCrowded) = (now, isCrowded)
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
        turn()
      }
    }
  }

  /// `SCHED_IDLE` of sched(7), a macro that is not imported.
  static let idleClass: CInt = 5
  /// Between two looks at the clock: some tenths of a microsecond.
  private static let pauses = 16

  private func turn() {
    while true {
      let moment = now()
      guard moment < end.load(ordering: .relaxed) else { return }
      // Before it is answered, the program that asked is not among those that are runnable.
      if moment >= lastLook + Self.lookTime, isAnswering.load(ordering: .relaxed) { look(at: moment) }
      for _ in 0..<Self.pauses { coffer_relax() }
    }
  }

  private func look(at moment: UInt64) {
    lastLook = moment
    guard isCrowded() else {
      crowdCount = 0
      pause = Self.pauseTime.first
      return
    }
    crowdCount += 1
    guard crowdCount >= Self.crowdLimit else { return }
    crowdCount = 0
    pauseEnd.store(moment + pause, ordering: .relaxed)
    end.store(0, ordering: .sequentiallyConsistent)
    pause = min(2 * pause, Self.pauseTime.most)
  }

  /// A request was taken for which somebody waits.
  ///
  /// - Parameter moment: when, by its clock.
  func didTake(at moment: UInt64) {
    isAnswering.store(true, ordering: .relaxed)
    let isApart = moment > lastAnswer.load(ordering: .relaxed) + Self.time
    let count = apartCount.load(ordering: .relaxed) + (isApart ? Self.apartWeight : -1)
    apartCount.store(min(max(count, 0), Self.apartMost), ordering: .relaxed)
    turn(from: moment)
  }

  /// It was answered.
  func didAnswer(at moment: UInt64) {
    isAnswering.store(false, ordering: .relaxed)
    lastAnswer.store(moment, ordering: .relaxed)
    turn(from: moment)
  }

  private func turn(from moment: UInt64) {
    guard apartCount.load(ordering: .relaxed) < Self.apartLimit, !isPaused(at: moment) else { return }
    end.store(moment + Self.time, ordering: .sequentiallyConsistent)
    if sleeps.load(ordering: .sequentiallyConsistent), sleeps.exchange(false, ordering: .sequentiallyConsistent) {
      sem_post(semaphore)
    }
  }

  /// Whether others want the processors.
  func isPaused(at moment: UInt64) -> Bool { moment < pauseEnd.load(ordering: .relaxed) }

  /// Ends the thread, soon.
  func stop() {
    isStopped.store(true, ordering: .releasing)
    end.store(0, ordering: .sequentiallyConsistent)
    sem_post(semaphore)
  }

  /// For tests.
  var isSleeping: Bool { sleeps.load(ordering: .sequentiallyConsistent) }
}
