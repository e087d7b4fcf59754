import CofferSystem
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// The thread that calls what is due.
@Suite struct TimekeeperTests {
  private final class Calls: Sendable {
    let numbers = Mutex<[Int]>([])
    let came = DispatchSemaphore(value: 0)

    func note(_ number: Int) {
      numbers.withLock { $0.append(number) }
      came.signal()
    }
  }

  @Test(.timeLimit(.minutes(10))) func `what is due first is called first, whenever it was added`() throws {
    let timekeeper = try #require(Timekeeper.present)
    #expect(Timekeeper.present === timekeeper)
    let calls = Calls()
    // Long enough for the others to be added before; and nobody waits for the last, which is due in an hour.
    timekeeper.call(afterSeconds: 3600) { calls.note(4) }
    timekeeper.call(afterSeconds: 0.5) { calls.note(3) }
    timekeeper.call(afterSeconds: 0.4) { calls.note(2) }
    timekeeper.call(afterSeconds: 0) { calls.note(1) }
    for _ in 0..<3 { calls.came.wait() }
    #expect(calls.numbers.withLock { $0 } == [1, 2, 3])
  }

  @Test(.timeLimit(.minutes(10))) func `many call it at once, and it calls each of theirs once`() throws {
    let timekeeper = try #require(Timekeeper.present)
    let calls = Calls()
    DispatchQueue.concurrentPerform(iterations: 4) { caller in
      for number in 0..<500 {
        timekeeper.call(afterSeconds: number.isMultiple(of: 7) ? 0.01 : 0) { calls.note(500 * caller + number) }
      }
    }
    for _ in 0..<2000 { calls.came.wait() }
    #expect(calls.numbers.withLock { $0.sorted() } == Array(0..<2000))
  }

  /// What takes long keeps nobody else waiting.
  @Test(.timeLimit(.minutes(10))) func `what is scheduled runs beside what is scheduled later`() {
    let scheduler = SystemScheduler()
    let calls = Calls()
    let mayGoOn = DispatchSemaphore(value: 0)
    scheduler.schedule(afterSeconds: 0) {
      mayGoOn.wait()
      calls.note(2)
    }
    scheduler.schedule(afterSeconds: 0.01) {
      calls.note(1)
      mayGoOn.signal()
    }
    for _ in 0..<2 { calls.came.wait() }
    #expect(calls.numbers.withLock { $0 } == [1, 2])
  }
}
