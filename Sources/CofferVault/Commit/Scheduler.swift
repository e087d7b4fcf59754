public import CofferSystem
internal import Dispatch

/// Runs something later, once. Tests inject one that they move.
public protocol Scheduler: Sendable {
  /// Throws where the system has no threads to give, without which nothing would ever be called. Asked before a vault is made or opened, and before its
  /// keys are replaced.
  func requireReady() throws(SystemError)

  func schedule(afterSeconds seconds: Double, _ body: @escaping @Sendable () -> Void)
}

extension Scheduler {
  public func requireReady() throws(SystemError) {}
}

/// The system's: a thread for each time, or, where there is none to be had, the one that keeps the time. The time in which the
/// machine sleeps counts, so that a lock's grace period is over a second after it wakes at the latest.
public struct SystemScheduler: Scheduler {
  /// Its own timers stand still while the machine sleeps: so nothing is waited for longer than this without a look at a
  /// clock that does not.
  static let step = 1.0
  private let now: @Sendable () -> ContinuousClock.Instant
  private let after: @Sendable (_ seconds: Double, @escaping @Sendable () -> Void) -> Void
  private let run: @Sendable (@escaping @Sendable () -> Void) -> Void

  public init() {
    // Made now, while the system has threads.
    _ = Timekeeper.present
    self.init(
      now: { .now },
      after: { seconds, body in
        if let timekeeper = Timekeeper.present { return timekeeper.call(afterSeconds: seconds, body) }
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + seconds, execute: body)
      },
      run: { body in do { try NewThread.start(body) } catch { body() } })
  }

  /// - Parameters:
  ///   - after: calls what it is given, which takes no time.
  ///   - run: runs what was scheduled, beside whoever calls it.
  init(
    now: @escaping @Sendable () -> ContinuousClock.Instant,
    after: @escaping @Sendable (_ seconds: Double, @escaping @Sendable () -> Void) -> Void,
    run: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() }
  ) {
    (self.now, self.after, self.run) = (now, after, run)
  }

  public func requireReady() throws(SystemError) {
    _ = try Timekeeper.started()
    // And one for GRDB's queue, which waits for it where there is none.
    try NewThread.start {}
  }

  public func schedule(afterSeconds seconds: Double, _ body: @escaping @Sendable () -> Void) {
    wait(until: now() + .seconds(seconds)) { run(body) }
  }

  private func wait(until end: ContinuousClock.Instant, _ body: @escaping @Sendable () -> Void) {
    let left = (end - now()) / .seconds(1)
    if left <= Self.step { return after(max(0, left), body) }
    after(Self.step) { wait(until: end, body) }
  }
}
