import CofferSystem
import Testing

@Suite struct TimedConditionTests {
  @Test func `a wait ends by its time, and at once where that has passed`() {
    let condition = TimedCondition()
    for left in [Duration.seconds(-3), .zero, .milliseconds(3)] {
      let end = SuspendingClock.now + left
      condition.withLock {
        // It may end earlier, for no reason, but does not turn.
        var turns = 0
        while condition.wait(until: end) { turns += 1 }
        #expect(turns < 100)
      }
      #expect(SuspendingClock.now >= end)
    }
  }

  @Test func `whoever waits hears of a change, however long they would have waited`() throws {
    final class State: @unchecked Sendable {
      let condition = TimedCondition()
      // Under `condition`.
      var waiting = 0
      var isDone = false
      var ended = 0
      var ranOut = 0
    }
    let state = State()
    let ends: [Duration?] = [nil, .seconds(3_600), .seconds(Int64.max / 2)]
    for end in ends {
      try NewThread.start {
        state.condition.withLock {
          state.waiting += 1
          state.condition.broadcast()
          while !state.isDone {
            if let end {
              if !state.condition.wait(until: .now + end) { state.ranOut += 1 }
            } else {
              state.condition.wait()
            }
          }
          state.ended += 1
          state.condition.broadcast()
        }
      }
    }
    state.condition.withLock {
      while state.waiting < ends.count { state.condition.wait() }
      state.isDone = true
      state.condition.broadcast()
      while state.ended < ends.count { state.condition.wait() }
      #expect(state.ranOut == 0)
    }
  }

  @Test func `the lock is one`() throws {
    final class Count: @unchecked Sendable {
      let condition = TimedCondition()
      var value = 0
      var threads = 0
    }
    let count = Count()
    for _ in 0..<4 {
      try NewThread.start {
        for _ in 0..<1_000 { count.condition.withLock { count.value += 1 } }
        count.condition.withLock {
          count.threads += 1
          count.condition.broadcast()
        }
      }
    }
    count.condition.withLock { while count.threads < 4 { count.condition.wait() } }
    #expect(count.value == 4_000)
  }
}
