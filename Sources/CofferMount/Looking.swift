/// Whether to look for the next request before sleeping, judged by how it went. A program that computes for longer between
/// two requests gains nothing by it, and one that shares this thread's processor loses: it cannot run, and so cannot ask,
/// until this thread sleeps.
struct Looking {
  private var misses = 0
  private var passes = 0

  private static let missLimit = 3
  /// So many times nobody looks before it is tried again.
  private static let passLimit = 32

  /// Takes note of being asked.
  mutating func isWorthwhile() -> Bool {
    if misses < Self.missLimit { return true }
    passes += 1
    if passes < Self.passLimit { return false }
    passes = 0
    return true
  }

  mutating func didFind() { misses = 0 }
  mutating func didMiss() { misses += 1 }
}
