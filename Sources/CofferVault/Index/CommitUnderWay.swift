internal import Foundation

/// A commit from its beginning, when what it stores is taken out of the buffer, to its end.
final class CommitUnderWay: @unchecked Sendable {
  let changes: ChangeBuffer
  /// Removed by its operations: their objects go when it is durable, and stay when it is not.
  let removals: [PendingRemoval]
  let operationCount: Int
  /// The counters of its root.
  let numbers: RootRecord
  /// That it will have.
  let generation: UInt64

  /// What became of the storing. Set and read under the index's lock.
  var outcome: Result<StoredRows.Stored, any Error>?
  /// Once it is the last commit. Set and read under the index's lock.
  var committed: CommittedRoot?

  private let condition = NSCondition()
  private var hasEnded = false

  init(
    _ changes: ChangeBuffer, removals: [PendingRemoval], operationCount: Int, numbers: RootRecord, generation: UInt64
  ) {
    self.changes = changes
    self.removals = removals
    self.operationCount = operationCount
    self.numbers = numbers
    self.generation = generation
  }

  /// It is the last commit, or has failed.
  func end() {
    condition.withLock {
      hasEnded = true
      condition.broadcast()
    }
  }

  /// Returns when it has ended. The caller does not hold the index's lock, without which it cannot end.
  func wait() {
    condition.withLock { while !hasEnded { condition.wait() } }
  }
}
