internal import Foundation

/// Commits that go on to give back what they have freed: the objects of removed files, and slots of changed ones.
///
/// A commit is durable before that is done, and others go on from then. Who finds the disk full waits here, so that nobody is
/// refused for want of room that is about to come.
final class RoomGivenBack: @unchecked Sendable {
  private let condition = NSCondition()
  // Under `condition`.
  private var next: UInt64 = 0
  private var running: Set<UInt64> = []
  private var waiting = 0

  /// Threads that wait for room now.
  var waiterCount: Int { condition.withLock { waiting } }

  /// A commit is made, and what it has freed is given back, from here to ``end(_:)``, which takes the number.
  func begin() -> UInt64 {
    condition.withLock {
      defer { next += 1 }
      running.insert(next)
      return next
    }
  }

  func end(_ number: UInt64) {
    condition.withLock {
      running.remove(number)
      condition.broadcast()
    }
  }

  /// Whether room is given back by others than a commit with that number.
  func isRunning(besides number: UInt64) -> Bool { condition.withLock { running.contains { $0 != number } } }

  /// Returns when all have ended that run now. Never in between.
  func wait() {
    condition.withLock {
      let awaited = running
      waiting += 1
      defer { waiting -= 1 }
      while !running.isDisjoint(with: awaited) { condition.wait() }
    }
  }
}
