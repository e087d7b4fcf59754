internal import Foundation
internal import GRDB

/// Connections that only read: who needs what is stored waits neither for who stores something nor for who reads from a slow disk.
///
/// They are opened when they are first needed, and stay. Of those that are free the first is used, so that it finds in its memory what it
/// has read before.
final class IndexReaders: @unchecked Sendable {
  private let open: (IndexDatabase.Memory) throws -> Reader
  private let condition = NSCondition()
  // Under `condition`.
  private var slots: [Slot] = []
  private var useCount = 0
  private var pauseCount = 0
  private var state = State.unwanted
  /// What the first may keep.
  private var memory = IndexDatabase.Memory.little

  private enum State { case unwanted, wanted, closed }

  /// More than anybody uses at once, but where there are many processors: a mount reads on two threads for each.
  static let limit = 16

  /// A connection's place. Nobody but who uses it touches `reader`.
  private final class Slot {
    let memory: IndexDatabase.Memory
    var reader: Reader?
    /// Under `condition`.
    var isFree = false

    init(_ memory: IndexDatabase.Memory) { self.memory = memory }
  }

  /// A connection, and what reads through it.
  final class Reader {
    private let queue: DatabaseQueue
    fileprivate let rows: RowReader

    /// - Parameter queue: is closed with it.
    init(_ queue: DatabaseQueue, _ rows: RowReader) { (self.queue, self.rows) = (queue, rows) }

    deinit {
      rows.close()
      try? queue.close()
    }
  }

  init(open: @escaping (IndexDatabase.Memory) throws -> Reader) { self.open = open }

  /// Whether somebody would have had to wait before, or is expected to.
  var areWanted: Bool { condition.withLock { state == .wanted } }

  /// Who reads has a connection of their own from now on.
  ///
  /// - Parameter memory: what the first of them may keep, where nobody has wanted one before.
  func want(_ memory: IndexDatabase.Memory = .little) {
    condition.withLock {
      guard state == .unwanted else { return }
      (state, self.memory) = (.wanted, memory)
    }
  }

  /// Runs `body` with a connection that nobody else uses. `false` where there is none to be had, because somebody must be alone with the
  /// index, or none can be opened.
  func use(_ body: (RowReader) -> Void) -> Bool {
    guard let slot = take() else { return false }
    defer { giveBack(slot) }
    if slot.reader == nil { slot.reader = try? open(slot.memory) }
    guard let reader = slot.reader else { return false }
    body(reader.rows)
    return true
  }

  private func take() -> Slot? {
    condition.withLock {
      while state == .wanted, pauseCount == 0 {
        if let slot = slots.first(where: \.isFree) {
          slot.isFree = false
          useCount += 1
          return slot
        }
        if slots.count < Self.limit {
          let slot = Slot(slots.isEmpty ? memory : .little)
          slots.append(slot)
          useCount += 1
          return slot
        }
        condition.wait()
      }
      return nil
    }
  }

  private func giveBack(_ slot: Slot) {
    condition.withLock {
      slot.isFree = true
      useCount -= 1
      condition.broadcast()
    }
  }

  /// Runs `body` while nobody reads here. Whoever would waits for what the caller has: the index's own connection.
  func pausing<Result>(_ body: () throws -> Result) rethrows -> Result {
    condition.withLock {
      pauseCount += 1
      while useCount > 0 { condition.wait() }
    }
    defer {
      condition.withLock {
        pauseCount -= 1
        condition.broadcast()
      }
    }
    return try body()
  }

  /// Ends all connections, with what they have in memory; they are opened again when they are next needed.
  func shrinkMemory() { end(nil) }

  /// Ends all connections, until somebody wants one again.
  func forget() { end(.unwanted) }

  /// Ends all connections, and there is none any more.
  func close() { end(.closed) }

  private func end(_ next: State?) {
    pausing {
      let ended = condition.withLock {
        if let next, state != .closed { state = next }
        defer { slots = [] }
        return slots
      }
      // Without the lock: each writes to no disk, but lets go of two files.
      for slot in ended { slot.reader = nil }
    }
  }

  /// For tests.
  var count: Int { condition.withLock { slots.count } }
}
