internal import Foundation
internal import Synchronization

/// Lets readers in until it is closed, and waits for those that are inside: for the price of two atomic additions to each.
final class ReaderGate: Sendable {
  private static let closed: UInt64 = 1 << 63
  /// How many are inside, and whether no more may enter.
  private let state: Atomic<UInt64>
  /// Of all gates: each file in use has one, and seldom is any of them closed.
  private static let condition = NSCondition()

  init(isOpen: Bool) { state = Atomic(isOpen ? 0 : Self.closed) }

  /// Whether the reader is in, and has to leave.
  func enter() -> Bool {
    if state.wrappingAdd(1, ordering: .acquiring).oldValue & Self.closed == 0 { return true }
    leave()
    return false
  }

  func leave() {
    guard state.wrappingSubtract(1, ordering: .releasing).newValue == Self.closed else { return }
    Self.condition.lock()
    Self.condition.broadcast()
    Self.condition.unlock()
  }

  /// Returns when nobody is inside any more.
  func close() {
    state.bitwiseOr(Self.closed, ordering: .acquiringAndReleasing)
    Self.condition.lock()
    // A reader that comes and is refused is inside for a moment too.
    while state.load(ordering: .acquiring) != Self.closed { Self.condition.wait() }
    Self.condition.unlock()
  }

  func open() { state.bitwiseAnd(~Self.closed, ordering: .releasing) }
}
