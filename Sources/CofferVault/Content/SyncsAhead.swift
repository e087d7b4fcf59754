internal import Foundation
internal import Synchronization

/// Syncs of an object that are under way without its file's lock.
///
/// They share one descriptor, to which a disk tells of what it lost once: whose sync succeeds knows nothing as long as
/// another's, which began before, has not said how it ended.
struct SyncsAhead: ~Copyable, Sendable {
  private let count = Atomic(0)
  private var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }
  /// Of all objects: seldom has anyone to wait.
  private static let condition = NSCondition()

  /// Under the file's lock, so that nobody who has it sees more of them begin.
  func begin() { count.wrappingAdd(1, ordering: .relaxed) }

  /// Comes after a failure was recorded.
  func end() {
    // Under the lock: who has seen that it is not the last one would miss its end.
    Self.condition.lock()
    if count.wrappingSubtract(1, ordering: .releasing).newValue == 0 { Self.condition.broadcast() }
    Self.condition.unlock()
  }

  /// Returns when none is under way. Under the file's lock.
  func waitForEnd() {
    if isEmpty { return }
    Self.condition.lock()
    while !isEmpty { Self.condition.wait() }
    Self.condition.unlock()
  }
}
