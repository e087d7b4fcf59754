internal import CFuse3
internal import CofferSystem
internal import Glibc

/// Asks the system what it may never answer, because a program does not that it asks itself.
public enum BriefAnswer {
  private final class State<Answer>: @unchecked Sendable {
    let condition = TimedCondition()
    /// Under `condition`.
    var answer: Answer?
  }

  /// What `question` answers; nil where it takes longer than so many seconds, and its thread waits on by itself; or where
  /// there is none.
  public static func within<Answer: Sendable>(
    _ seconds: Double, _ question: @escaping @Sendable () -> Answer
  ) -> Answer? {
    let state = State<Answer>()
    do {
      try NewThread.start {
        let answer = question()
        state.condition.withLock {
          state.answer = answer
          state.condition.broadcast()
        }
      }
    } catch {
      return nil
    }
    let end = SuspendingClock.now + .seconds(seconds)
    return state.condition.withLock {
      while state.answer == nil, state.condition.wait(until: end) {}
      return state.answer
    }
  }

  /// Runs `body`, which asks something about a mount that this process serves itself, on a thread that does nothing else: it has none of
  /// the process's open files from then on, and what `body` opens is closed behind it. Nil where the system is older than Linux 5.9, or
  /// refuses that.
  ///
  /// Who waits for the answer to a request that somebody has taken cannot be killed, and the system closes a process's files when the last
  /// thread that has them has ended: with them the mount's device, which would end what waits. A process that was killed while it
  /// waited for itself would stay for ever.
  static func ofOwnMount<Answer>(_ body: () -> Answer) -> Answer? {
    // Whoever handles a signal may write to a descriptor.
    var signals = sigset_t()
    sigfillset(&signals)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    guard coffer_leave_descriptors() == 0 else { return nil }
    defer { _ = coffer_leave_descriptors() }
    return body()
  }
}
