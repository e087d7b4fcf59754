internal import CofferSystem

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
}
