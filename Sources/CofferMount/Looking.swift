/// Whether to look for the next request before sleeping, judged by how it went. A program that computes for longer between
/// two requests gains nothing by it, and one that shares this thread's processor loses: it cannot run, and so cannot ask,
/// until this thread sleeps.
struct Looking {
  private var misses = 0
  private var passes = 0
  /// So many times nobody looks before it is tried again.
  private var passLimit = Self.firstPassLimit

  private static let missLimit = 3
  private static let firstPassLimit = 32
  /// A program that goes on as it did is tried less and less often.
  private static let lastPassLimit = 128

  /// Takes note of being asked.
  mutating func isWorthwhile() -> Bool {
    if misses < Self.missLimit { return true }
    passes += 1
    if passes < passLimit { return false }
    passes = 0
    passLimit = min(2 * passLimit, Self.lastPassLimit)
    return true
  }

  mutating func didFind() {
    misses = 0
    passLimit = Self.firstPassLimit
  }

  mutating func didMiss() { misses += 1 }
}
