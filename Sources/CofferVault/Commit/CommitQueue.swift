internal import Foundation
internal import Synchronization

/// Brings commits to their end beside the operations that go on.
///
/// Each on a thread of its own: operations wait for a commit that was begun, so that it must wait neither for an earlier one,
/// which goes on to delete what it removed, nor for a thread of a pool.
final class CommitQueue: Sendable {
  private let group = DispatchGroup()
  private let failed = Atomic(false)

  /// A commit failed here, and nobody was told.
  var hasFailed: Bool { failed.load(ordering: .acquiring) }
  /// Somebody was told, or has made the commit.
  func forgetFailure() { failed.store(false, ordering: .releasing) }

  func run(_ commit: @escaping @Sendable () throws -> Void) {
    group.enter()
    let thread = Thread { [self] in
      do { try commit() } catch { failed.store(true, ordering: .releasing) }
      group.leave()
    }
    thread.name = "coffer commit"
    thread.start()
  }

  /// Returns when everything is done.
  func wait() { group.wait() }
}
