internal import CofferSystem
internal import Synchronization

/// How far a mount has come, and who waits until it has.
final class MountPhase: Sendable {
  /// `cutOff`: nothing passes any more, and what could be stored is, but the kernel has not let go of the mount, because programs
  /// use it.
  enum Phase {
    case starting, mounted, live, cutOff, ended

    /// Nothing passes any more.
    var isOver: Bool {
      switch self {
      case .starting, .mounted, .live: false
      case .cutOff, .ended: true
      }
    }
  }

  private let phase = Mutex(Phase.starting)
  private let changed = TimedCondition()

  var present: Phase { phase.withLock { $0 } }

  /// An ended mount stays so.
  func set(_ new: Phase) {
    changed.withLock {
      phase.withLock { if $0 != .ended { $0 = new } }
      changed.broadcast()
    }
  }

  /// Waits until `isReached` is true of the phase, which it returns.
  @discardableResult
  func wait(until isReached: (Phase) -> Bool) -> Phase {
    changed.withLock {
      while true {
        let present = present
        if isReached(present) { return present }
        changed.wait()
      }
    }
  }

  /// Waits until the mount is over, or somebody wants something else, for which it looks twice a second; `false` for that.
  func waitUntilOver(orUntil isWanted: () -> Bool) -> Bool {
    changed.withLock {
      while !present.isOver {
        if isWanted() { return false }
        _ = changed.wait(until: .now + .seconds(0.5))
      }
      return true
    }
  }
}
