import CofferSystem
import Foundation
import Synchronization

/// Waits that end: a test that would wait for ever fails.
enum Patience {
  private static let seconds = 60.0

  static func wait(for semaphore: DispatchSemaphore) -> Bool { semaphore.wait(timeout: .now() + seconds) == .success }

  static func wait(until condition: () -> Bool) -> Bool {
    let end = DispatchTime.now() + seconds
    while !condition(), DispatchTime.now() < end { sched_yield() }
    return condition()
  }
}

/// A value that threads of a test have in common.
final class Shared<Value: Sendable>: Sendable {
  private let value: Mutex<Value>
  init(_ value: Value) { self.value = Mutex(value) }
  var now: Value { value.withLock { $0 } }
  func set(_ new: Value) { value.withLock { $0 = new } }
  func change(_ body: (inout Value) -> Void) { value.withLock { body(&$0) } }
}
