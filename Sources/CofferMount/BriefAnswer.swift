internal import CofferSystem

/// Asks the system what it may never answer, because a program does not that it asks itself.
enum BriefAnswer {
  private final class State: @unchecked Sendable {
    let condition = TimedCondition()
    /// Under `condition`.
    var answer: Bool?
  }

  /// What `question` answers; nil where it takes longer than so many seconds, and its thread waits on by itself; or where
  /// there is none.
  static func within(_ seconds: Double, _ question: @escaping @Sendable () -> Bool) -> Bool? {
    let state = State()
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
