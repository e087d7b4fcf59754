internal import Dispatch

/// Runs something later, once. Tests inject one that they move.
public protocol Scheduler: Sendable {
  func schedule(afterSeconds seconds: Double, _ body: @escaping @Sendable () -> Void)
}

/// The system's: a thread of its pool. The time in which the machine sleeps counts, so that a lock's grace period is over
/// a second after it wakes at the latest.
public struct SystemScheduler: Scheduler {
  /// Its own timers stand still while the machine sleeps: so nothing is waited for longer than this without a look at a
  /// clock that does not.
  static let step = 1.0
  private let now: @Sendable () -> ContinuousClock.Instant
  private let after: @Sendable (_ seconds: Double, @escaping @Sendable () -> Void) -> Void

  public init() {
    self.init(
      now: { .now },
      after: { seconds, body in
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + seconds, execute: body)
      })
  }

  init(
    now: @escaping @Sendable () -> ContinuousClock.Instant,
    after: @escaping @Sendable (_ seconds: Double, @escaping @Sendable () -> Void) -> Void
  ) {
    (self.now, self.after) = (now, after)
  }

  public func schedule(afterSeconds seconds: Double, _ body: @escaping @Sendable () -> Void) {
    wait(until: now() + .seconds(seconds), body)
  }

  private func wait(until end: ContinuousClock.Instant, _ body: @escaping @Sendable () -> Void) {
    let left = (end - now()) / .seconds(1)
    if left <= Self.step { return after(max(0, left), body) }
    after(Self.step) { wait(until: end, body) }
  }
}
