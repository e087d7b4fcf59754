internal import Foundation

/// Tells the kernel of changes from a thread of its own, which answers no request.
final class ChangeQueue: @unchecked Sendable {
  private let condition = NSCondition()
  private var waiting: [KernelChange] = []
  private var added = 0
  private var done = 0
  private var hasEnded = false

  /// - Parameter tell: called on the queue's thread, in order.
  init(_ tell: @escaping @Sendable (KernelChange) -> Void) {
    let thread = Thread { [self] in
      while let changes = next() {
        // The same change many times is one.
        var told: Set<KernelChange> = []
        for change in changes where told.insert(change).inserted { tell(change) }
        condition.withLock {
          done += changes.count
          condition.broadcast()
        }
      }
    }
    thread.name = "coffer mount changes"
    thread.start()
  }

  /// - Parameter isWaiting: returns when the kernel has been told.
  func add(_ changes: [KernelChange], isWaiting: Bool) {
    condition.lock()
    defer { condition.unlock() }
    if hasEnded { return }
    waiting += changes
    added += changes.count
    condition.broadcast()
    let mine = added
    while isWaiting, done < mine, !hasEnded { condition.wait() }
  }

  func end() {
    condition.withLock {
      hasEnded = true
      condition.broadcast()
    }
  }

  private func next() -> [KernelChange]? {
    condition.lock()
    defer { condition.unlock() }
    while waiting.isEmpty, !hasEnded { condition.wait() }
    if hasEnded { return nil }
    defer { waiting = [] }
    return waiting
  }
}
