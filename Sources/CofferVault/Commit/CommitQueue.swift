internal import CofferSystem
internal import Dispatch
internal import Synchronization

/// Brings commits to their end beside the operations that go on.
///
/// Each on a thread of its own: operations wait for a commit that was begun, so that it must wait neither for an earlier one,
/// which goes on to delete what it removed, nor for a thread of a pool. Where the system has no thread to give, whoever begins
/// a commit makes it: one that nobody makes would be waited for until the process ends.
final class CommitQueue: @unchecked Sendable {
  /// Runs what it is given on a thread of its own, or throws. Tests have one that throws, set before anything is committed.
  var startThread: (@escaping @Sendable () -> Void) throws -> Void = { try NewThread.start($0) }
  private let group = DispatchGroup()
  private let failed = Atomic(false)
  private let waiting = Atomic(0)

  /// A commit failed here, and nobody was told.
  var hasFailed: Bool { failed.load(ordering: .acquiring) }
  /// Somebody was told, or has made the commit.
  func forgetFailure() { failed.store(false, ordering: .releasing) }

  func run(_ commit: @escaping @Sendable () throws -> Void) {
    group.enter()
    let body: @Sendable () -> Void = { [self] in
      do { try commit() } catch { failed.store(true, ordering: .releasing) }
      group.leave()
    }
    do { try startThread(body) } catch { body() }
  }

  /// Returns when everything is done.
  func wait() {
    waiting.add(1, ordering: .relaxed)
    defer { waiting.subtract(1, ordering: .relaxed) }
    group.wait()
  }

  /// Threads that wait, for tests.
  var waiterCount: Int { waiting.load(ordering: .relaxed) }
}
