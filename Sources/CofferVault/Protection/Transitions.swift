internal import Foundation

/// Makes locks and unlocks one after the other: each with its events, which are heard in the order in which it happened.
///
/// An observer is called within one, and may lock or unlock itself: that is done when the present one is complete. It must
/// not wait for another thread that locks or unlocks. Nothing else of the vault takes this lock, so that whoever reads,
/// writes or commits is never kept by it; it is taken before every other one.
final class Transitions: @unchecked Sendable {
  private let lock = NSRecursiveLock()
  // Under `lock`.
  private var isRunning = false
  private var waiting: [() -> Void] = []

  /// Runs `body` when nobody else is in one. It is done when this returns, but for a call from within one.
  func run(_ body: @escaping () -> Void) {
    lock.lock()
    defer { lock.unlock() }
    waiting.append(body)
    // The lock is this thread's: an observer called.
    if isRunning { return }
    isRunning = true
    defer { isRunning = false }
    while !waiting.isEmpty { waiting.removeFirst()() }
  }
}
