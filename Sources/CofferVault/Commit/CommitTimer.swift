internal import Synchronization

/// Sees to it that no change waits long for a commit: the first one after a commit sets the clock.
final class CommitTimer: Sendable {
  /// Seconds that a change waits at most.
  static let interval = 5.0
  private let scheduler: any Scheduler
  private let isSet = Atomic(false)

  init(_ scheduler: any Scheduler) { self.scheduler = scheduler }

  /// Runs what `commit` makes after the interval, unless it is about to run already.
  func set(_ commit: () -> @Sendable () -> Void) {
    guard !isSet.exchange(true, ordering: .acquiringAndReleasing) else { return }
    let commit = commit()
    // Not held by what waits: a scheduler that is the vault's own would hold itself.
    scheduler.schedule(afterSeconds: Self.interval) { [weak self] in
      self?.isSet.store(false, ordering: .releasing)
      commit()
    }
  }
}
