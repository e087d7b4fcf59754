internal import CFuse3
internal import CofferSystem

/// Tells a mount's kernel of changes from a thread of its own, which answers no request.
///
/// Who makes a change for another mount waits for that before it answers, so that a program which knows of a change finds it in
/// every mount. But the kernel may first wait for the lock of a folder or of a page, and who holds that may be a program whose
/// request waits for an answer here, from a thread that waits for the other kernel to be told of the same node. So who is to wait
/// adds its change first, and then does not wait where its own mount's kernel is still to be told of one of its nodes; nor, where
/// it has changed a folder, of any folder, for a rename that has locked one waits for another. Of those that would wait for
/// each other in a ring, the last one goes on, and with it all. Where a program holds a lock for some other reason, the wait ends
/// by time.
final class ChangeQueue: @unchecked Sendable {
  /// Stands for changes that were added: all that came before have been told when it has come up.
  struct Ticket { fileprivate let number: Int }

  /// Far longer than the kernel takes where nothing holds it up, in seconds.
  static let briefTime = 1.0
  /// Seconds after which the kernel is told once more of a node that it did not know, and how often.
  static let retryTime = 0.02
  private static let retryLimit = 3

  private let condition = TimedCondition()
  // Under `condition`.
  /// Each once, however often it was added: the kernel hears of it after the last time. So a kernel that takes none, because a
  /// program holds a lock, makes the queue no longer than what there is to change.
  private var waiting: [KernelChange] = []
  private var distinct: Set<KernelChange> = []
  /// Where changes of content wait: each node's once, of all that has changed.
  private var contents: [fuse_ino_t: Int] = [:]
  /// How many changes of each node are still to be told.
  private var nodes: [fuse_ino_t: Int] = [:]
  /// How many of them are changes of folders.
  private var nameCount = 0
  /// How many are places of folders that are to be told for the first time.
  private var placeCount = 0
  private var added = 0
  private var done = 0
  /// What was done when somebody had waited in vain.
  private var doneInVain: Int?
  private var hasEnded = false

  /// What the kernel is told of once more, how often, and when. Changed on the queue's thread alone, and under `condition`.
  private var retries: [KernelChange: (left: Int, due: SuspendingClock.Instant)] = [:]

  /// Throws where the system gives no thread.
  ///
  /// - Parameters:
  ///   - retryTime: as ``retryTime``, for tests.
  ///   - tell: called on the queue's thread, in order; `false` where the kernel is to be told of it once more, a while later. Nobody
  ///     waits for that.
  init(retryTime: Double = retryTime, _ tell: @escaping @Sendable (KernelChange) -> Bool) throws(SystemError) {
    try NewThread.start { [self] in
      while let changes = next() {
        for change in changes { didTell(change, tell(change) ? 0 : Self.retryLimit, after: retryTime) }
        condition.withLock {
          done += changes.count
          condition.broadcast()
        }
        let now = SuspendingClock.now
        for (change, retry) in retries where retry.due <= now {
          didRetry(change, tell(change) ? 0 : retry.left - 1, after: retryTime)
        }
      }
    }
  }

  /// - Parameter left: how often the kernel is to be told of it once more. Until then it counts as not told for who wants to know
  ///   whether this kernel may be waiting.
  private func didTell(_ change: KernelChange, _ left: Int, after seconds: Double) {
    condition.withLock {
      if change.isOfPlace { placeCount -= 1 }
      let wasToldOnceMore = retries[change] != nil
      if left > 0 { retries[change] = (left, .now + .seconds(seconds)) }
      if left == 0 || wasToldOnceMore { forget(change) }
    }
  }

  private func didRetry(_ change: KernelChange, _ left: Int, after seconds: Double) {
    condition.withLock {
      retries[change] = left > 0 ? (left, .now + .seconds(seconds)) : nil
      if left == 0 { forget(change) }
    }
  }

  /// Under `condition`.
  private func forget(_ change: KernelChange) {
    let count = nodes[change.node] ?? 0
    nodes[change.node] = count > 1 ? count - 1 : nil
    if change.isOfName { nameCount -= 1 }
  }

  @discardableResult
  func add(_ changes: [KernelChange]) -> Ticket {
    condition.withLock {
      if !hasEnded {
        for change in changes where !isWaiting(change) {
          waiting.append(change)
          added += 1
          nodes[change.node, default: 0] += 1
          if change.isOfName { nameCount += 1 }
          if change.isOfPlace { placeCount += 1 }
        }
        condition.broadcast()
      }
      return Ticket(number: added)
    }
  }

  /// Whether the kernel hears of a change with what waits already; else it is noted as what waits next. Under `condition`.
  private func isWaiting(_ change: KernelChange) -> Bool {
    guard case .content(let node, let range) = change else { return !distinct.insert(change).inserted }
    guard let index = contents[node] else {
      contents[node] = waiting.count
      return false
    }
    if case .content(_, let other) = waiting[index] {
      let all = min(range.lowerBound, other.lowerBound)..<max(range.upperBound, other.upperBound)
      waiting[index] = .content(node, all)
    }
    return true
  }

  /// Changes that wait to be told.
  var count: Int { condition.withLock { waiting.count } }

  /// Whether this kernel may be waiting for who makes these changes here.
  func concerns(_ changes: [KernelChange]) -> Bool {
    // Who is looked for at its place passes other folders, which are not counted.
    condition.withLock {
      placeCount > 0 || changes.contains { nodes[$0.node] != nil || ($0.isOfName && nameCount > 0) }
    }
  }

  /// Returns when the kernel has been told, but waits no longer than a moment; nor at all, where somebody has waited in vain and
  /// the kernel has been told of nothing since. Never from a thread for whose answer it may wait.
  ///
  /// - Parameter seconds: how long that is, for tests.
  func wait(for ticket: Ticket, atMost seconds: Double = briefTime) {
    let end = SuspendingClock.now + .seconds(seconds)
    condition.withLock {
      while done < ticket.number, !hasEnded, doneInVain != done {
        if !condition.wait(until: end) { doneInVain = done }
      }
    }
  }

  func end() {
    condition.withLock {
      hasEnded = true
      condition.broadcast()
    }
  }

  /// What is to be told, perhaps nothing but what is to be told once more; nil at the end.
  private func next() -> [KernelChange]? {
    condition.withLock {
      let due = retries.values.map(\.due).min()
      while waiting.isEmpty, !hasEnded {
        guard let due else {
          condition.wait()
          continue
        }
        if !condition.wait(until: due) { break }
      }
      if hasEnded { return nil }
      defer {
        waiting = []
        distinct = []
        contents = [:]
      }
      return waiting
    }
  }
}
