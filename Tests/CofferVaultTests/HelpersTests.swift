import CofferSystem
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// Threads that help with loops.
@Suite struct HelpersTests {
  private final class Counts: Sendable {
    let calls: Mutex<[Int]>
    let threads = Mutex<Set<pthread_t>>([])
    init(_ count: Int) { calls = Mutex([Int](repeating: 0, count: count)) }

    func note(_ number: Int) {
      calls.withLock { $0[number] += 1 }
      _ = threads.withLock { $0.insert(pthread_self()) }
    }
  }

  @Test(arguments: [0, 1, 3]) func `every number is called once, from many threads at once`(limit: Int) {
    let helpers = Helpers(limit: limit)
    DispatchQueue.concurrentPerform(iterations: 4) { caller in
      for round in 0..<300 {
        let count = (round + caller) % 9
        let counts = Counts(count)
        helpers.each(count) { counts.note($0) }
        #expect(counts.calls.withLock { $0.allSatisfy { $0 == 1 } })
      }
    }
  }

  @Test func `a loop within a loop ends`() {
    let helpers = Helpers(limit: 2)
    let counts = Counts(36)
    helpers.each(6) { outer in helpers.each(6) { counts.note(6 * outer + $0) } }
    #expect(counts.calls.withLock { $0.allSatisfy { $0 == 1 } })
  }

  @Test(.timeLimit(.minutes(10))) func `another thread helps, and is there for the next`() {
    let started = Counts(1)
    let helpers = Helpers(limit: 1) { body in
      started.note(0)
      try NewThread.start(body)
    }
    for _ in 0..<3 {
      // Each waits for the other, which is no loop that anybody may write.
      let both = DispatchSemaphore(value: 0)
      let here = DispatchSemaphore(value: 0)
      let counts = Counts(2)
      helpers.each(2) { number in
        counts.note(number)
        (number == 0 ? both : here).signal()
        (number == 0 ? here : both).wait()
      }
      #expect(counts.threads.withLock { $0.count } == 2)
    }
    #expect(started.calls.withLock { $0 } == [1])
  }

  @Test func `threads that are made for it do all of it, and each number once`() {
    for count in 0..<5 {
      let counts = Counts(count)
      Helpers.apart(count) { counts.note($0) }
      #expect(counts.calls.withLock { $0.allSatisfy { $0 == 1 } })
    }
  }

  @Test func `where there are no threads, who calls does all of it`() {
    let helpers = Helpers(limit: 3) { _ in throw SystemError(code: EAGAIN, call: "pthread_create") }
    let counts = Counts(100)
    helpers.each(100) { counts.note($0) }
    #expect(counts.calls.withLock { $0.allSatisfy { $0 == 1 } })
    #expect(counts.threads.withLock { $0.count } == 1)
  }
}
