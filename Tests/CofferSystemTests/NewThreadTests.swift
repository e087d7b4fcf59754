import CofferSystem
import Foundation
import Synchronization
import Testing

@Suite struct NewThreadTests {
  private final class Count: Sendable { let value = Atomic(0) }

  @Test func `it runs once, beside who starts it, and deep`() throws {
    @Sendable func depth(_ left: Int) -> Int {
      // More than a thread of Darwin's usual size holds.
      withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { room in
        room[0] = UInt8(left & 0xff)
        return left == 0 ? 0 : 1 + depth(left - 1)
      }
    }
    let (hasStarted, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let count = Count()
    try NewThread.start {
      hasStarted.signal()
      mayEnd.wait()
      count.value.add(depth(1000), ordering: .relaxed)
      hasStarted.signal()
    }
    hasStarted.wait()
    mayEnd.signal()
    hasStarted.wait()
    #expect(count.value.load(ordering: .relaxed) == 1000)
  }

  @Test func `where the system gives none it says so, and runs and keeps nothing`() {
    final class Kept: Sendable {}
    weak var kept: Kept?
    let runs = Count()
    do {
      let held = Kept()
      kept = held
      // No system has so much memory.
      #expect(throws: SystemError.self) {
        try NewThread.start(stackByteCount: 1 << 60) {
          withExtendedLifetime(held) { _ = runs.value.add(1, ordering: .relaxed) }
        }
      }
    }
    #expect(kept == nil)
    #expect(runs.value.load(ordering: .relaxed) == 0)
  }
}
