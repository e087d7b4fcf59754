internal import CofferSystem
internal import Foundation

/// Threads that are there before it is known what they do: where the system does not give as many, that shows in time.
final class ReservedThreads: @unchecked Sendable {
  private let count: Int
  private let condition = NSCondition()
  // Under `condition`.
  /// One for each thread, or none for any; nil as long as they wait.
  private var bodies: [@Sendable () -> Void]?
  private var presentCount = 0

  /// Throws where the system does not give all of them; none is left then.
  init(count: Int) throws(SystemError) {
    self.count = count
    do throws(SystemError) {
      for number in 0..<count {
        condition.withLock { presentCount += 1 }
        do throws(SystemError) {
          try NewThread.start { [self] in
            body(number)?()
            didEnd()
          }
        } catch {
          didEnd()
          throw error
        }
      }
    } catch {
      dismiss()
      throw error
    }
  }

  /// Has each thread run one of `bodies`, as many as there are threads. Once, and not after ``dismiss()``.
  func run(_ bodies: [@Sendable () -> Void]) {
    precondition(bodies.count == count, "a thread without work")
    begin(bodies)
  }

  /// Nothing is to be done.
  func dismiss() { begin([]) }

  /// Returns when every thread is done.
  func wait() { condition.withLock { while presentCount > 0 { condition.wait() } } }

  private func begin(_ bodies: [@Sendable () -> Void]) {
    condition.withLock {
      self.bodies = bodies
      condition.broadcast()
    }
  }

  private func body(_ number: Int) -> (@Sendable () -> Void)? {
    condition.withLock {
      while true {
        if let bodies { return bodies.isEmpty ? nil : bodies[number] }
        condition.wait()
      }
    }
  }

  private func didEnd() {
    condition.withLock {
      presentCount -= 1
      condition.broadcast()
    }
  }
}
