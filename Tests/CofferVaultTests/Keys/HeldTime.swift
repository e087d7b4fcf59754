import CofferSystem
import Synchronization

/// A civil clock and a clock since the boot that stand still until a test moves them.
final class HeldTime: TimeSource {
  private struct State {
    var wall = Timestamp(seconds: 1_800_000_000)
    var boot: UInt8 = 1
    var uptime: UInt64 = 1000
  }
  private let state = Mutex(State())

  func now() -> Timestamp { state.withLock { $0.wall } }

  func sinceBoot() -> BootMoment {
    state.withLock { BootMoment(boot: [UInt8](repeating: $0.boot, count: 16), seconds: $0.uptime) }
  }

  /// Lets time pass.
  func advance(_ seconds: UInt64) {
    state.withLock { state in
      state.uptime += seconds
      state.wall.seconds += Int64(seconds)
    }
  }

  /// Sets the civil clock.
  func setWall(_ seconds: Int64) { state.withLock { $0.wall.seconds = seconds } }

  /// Starts the system anew.
  func reboot(uptime: UInt64 = 5) {
    state.withLock { state in
      state.boot &+= 1
      state.uptime = uptime
    }
  }
}
