internal import CofferSystem
internal import Synchronization

/// What a vault tells those who show its content. A lock tells the first three of these, unless somebody unlocks within
/// the grace period, and an unlock the last: always in the order in which it happens, and never two at a time.
public enum VaultEvent: Sendable, Equatable {
  /// The keys of the classes complete and complete-unless-open are about to go: finish with the content.
  case willBecomeUnavailable
  /// The grace period is over: the keys go when every observer has returned. Until then files that are open can still be
  /// read and written, so that what others keep of them can be written back.
  case isBecomingUnavailable
  /// They are gone.
  case didBecomeUnavailable
  /// They are back.
  case didBecomeAvailable
}

/// Ends an observation when it goes.
public final class VaultObservation: Sendable {
  private let end: @Sendable () -> Void

  init(_ end: @escaping @Sendable () -> Void) { self.end = end }

  deinit { end() }
}

/// Who is told of a vault's events, in the order of asking.
final class Observers: Sendable {
  private let state = Mutex<(next: Int, all: [(number: Int, body: @Sendable (VaultEvent) -> Void)])>((0, []))

  func add(_ body: @escaping @Sendable (VaultEvent) -> Void) -> VaultObservation {
    let number = state.withLock { state in
      state.next += 1
      state.all.append((state.next, body))
      return state.next
    }
    return VaultObservation { [weak self] in
      self?.state.withLock { state in state.all.removeAll { $0.number == number } }
    }
  }

  func tell(_ event: VaultEvent) {
    for observer in state.withLock({ $0.all }) { observer.body(event) }
  }
}
