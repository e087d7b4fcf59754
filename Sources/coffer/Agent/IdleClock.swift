/// When a vault has been used last, and when it is to be locked for that.
struct IdleClock {
  typealias Instant = ContinuousClock.Instant

  /// Nil: never.
  private var limit: Duration?
  private var lastUse: Instant
  private var userCount = 0
  /// The lock was made, and nobody has unlocked since.
  private var isSpent = false

  init(limit: Duration?, now: Instant) {
    self.limit = limit
    lastUse = now
  }

  mutating func begin() { userCount += 1 }

  mutating func end(now: Instant) {
    userCount -= 1
    lastUse = now
  }

  /// The vault was unlocked.
  mutating func restart(now: Instant) {
    lastUse = now
    isSpent = false
  }

  /// Somebody used the vault otherwise than by a command, since `lastLook`. Where nobody has looked for long, as while a machine sleeps, the
  /// lock may have been due before: then it is.
  mutating func touch(now: Instant, lastLook: Instant) {
    let expected = min(limit ?? AgentServer.longestWait, AgentServer.longestWait)
    if now - lastLook > expected + Self.delay, remaining(now: now) == .zero { return }
    lastUse = now
  }

  /// That a busy machine may look late.
  private static let delay = Duration.seconds(15)

  /// Another limit holds from now on, counted from the last use.
  mutating func limit(to limit: Duration?) { self.limit = limit }

  /// How long until the lock is due; nil where nothing is to wait for.
  func remaining(now: Instant) -> Duration? {
    guard let limit, userCount == 0, !isSpent else { return nil }
    return max(.zero, limit - (now - lastUse))
  }

  /// Whether the lock is due. It is so once.
  mutating func isDue(now: Instant) -> Bool {
    guard remaining(now: now) == .zero else { return false }
    isSpent = true
    return true
  }
}
