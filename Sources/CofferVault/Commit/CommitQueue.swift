internal import Dispatch
internal import Synchronization

/// Brings commits to their end beside the operations that go on.
final class CommitQueue: Sendable {
  private let queue = DispatchQueue(label: "coffer commit")
  private let group = DispatchGroup()
  private let failed = Atomic(false)

  /// A commit failed here, and nobody was told.
  var hasFailed: Bool { failed.load(ordering: .acquiring) }
  /// Somebody was told, or has made the commit.
  func forgetFailure() { failed.store(false, ordering: .releasing) }

  func run(_ commit: @escaping @Sendable () throws -> Void) {
    queue.async(group: group) { [self] in
      do { try commit() } catch { failed.store(true, ordering: .releasing) }
    }
  }

  /// Returns when everything is done.
  func wait() { group.wait() }
}
