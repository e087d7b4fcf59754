import CofferSystem
import Synchronization

/// A clock that stands still until a test moves it.
final class TestClock: TimeSource {
  private let time = Mutex(Timestamp(seconds: 1_800_000_000))

  func now() -> Timestamp { time.withLock { $0 } }

  func advance(nanoseconds: UInt32 = 1_000_001) {
    time.withLock { time in
      time.nanoseconds += nanoseconds
      time.seconds += Int64(time.nanoseconds / 1_000_000_000)
      time.nanoseconds %= 1_000_000_000
    }
  }
}
