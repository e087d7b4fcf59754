import Testing

@testable import coffer

@Suite struct IdleClockTests {
  private static let start = ContinuousClock.now

  private static func at(_ minutes: Double) -> IdleClock.Instant { start + .seconds(60 * minutes) }

  @Test func `who uses a mount right before the lock is due puts it off`() {
    var clock = IdleClock(limit: .seconds(60 * 15), now: Self.start)
    clock.touch(now: Self.at(15), lastLook: Self.at(14))
    #expect(clock.remaining(now: Self.at(15)) == .seconds(60 * 15))
  }

  /// Nobody knows whether it was used before the machine slept or since it woke.
  @Test func `a lock that came due while a machine slept is not put off by who is first after that`() {
    var clock = IdleClock(limit: .seconds(60 * 15), now: Self.start)
    clock.touch(now: Self.at(1), lastLook: Self.start)
    clock.touch(now: Self.at(120), lastLook: Self.at(1))
    #expect(clock.remaining(now: Self.at(120)) == .zero)
    // Where it slept for less, it was not due.
    clock.restart(now: Self.at(120))
    clock.touch(now: Self.at(130), lastLook: Self.at(121))
    #expect(clock.remaining(now: Self.at(130)) == .seconds(60 * 15))
  }
}
