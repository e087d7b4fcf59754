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

  /// More than anybody uses at once, but where there are many processors, for a mount reads on two threads for each, or where a mount has
  /// more threads because many programs wait for a slow disk.
  static let limit = 16

  /// A connection's place. Nobody but who uses it touches `reader`.
  fileprivate final class Slot {
    var reader: Reader?
    // Under `condition`.
    var memory: IndexDatabase.Memory
    var isFree = false
    /// What it has in memory is to go before it is used again.
    var isStale = false

    init(_ memory: IndexDatabase.Memory) { self.memory = memory }
  }

  /// A connection, and what reads through it.
  final class Reader {
    fileprivate let queue: DatabaseQueue
    fileprivate let rows: RowReader
    private let compilation: CompilationGuard

    /// - Parameters:
    ///   - queue: is closed with it.
    ///   - prepare: reads through it, and throws where it is none to read through.
    init(_ queue: DatabaseQueue, _ prepare: (Database) throws -> RowReader) throws {
      self.queue = queue
      (compilation, rows) = try queue.inDatabase { db in try CompilationGuard.around(db) { try prepare(db) } }
    }

    /// Gives back what it has of the index in memory.
    fileprivate func shrink(to memory: IndexDatabase.Memory) throws {
      try queue.inDatabase { db in
        try db.execute(sql: memory.rawValue)
        try db.execute(sql: "PRAGMA shrink_memory")
      }
    }

    deinit {
      rows.close()
      compilation.end()
      try? queue.close()
    }
  }

  init(open: @escaping (IndexDatabase.Memory) throws -> Reader) { self.open = open }

  /// Whether somebody would have had to wait before, or is expected to.
  var areWanted: Bool { condition.withLock { state == .wanted } }

  /// Who reads has a connection of their own from now on.
  func want() {
    condition.withLock { if state == .unwanted { state = .wanted } }
  }

  /// Runs `body` with a connection that nobody else uses. `false` where there is none to be had, because somebody must be alone with the
  /// index, or none can be opened.
  func use(_ body: (RowReader) -> Void) -> Bool {
    guard let slot = take() else { return false }
    defer { giveBack(slot) }
    guard let reader = slot.reader else { return false }
    body(reader.rows)
    return true
  }

  /// A connection for who reads for long.
  struct Lent {
    fileprivate let slot: Slot
    let queue: DatabaseQueue
    let rows: RowReader
  }

  /// Takes a connection that is to be given back by ``end(_:)``, and soon where whoever has it ``mustEnd``. nil as of ``use(_:)``.
  func lend() -> Lent? {
    guard let slot = take(forLong: true) else { return nil }
    guard let reader = slot.reader else {
      giveBack(slot)
      return nil
    }
    return Lent(slot: slot, queue: reader.queue, rows: reader.rows)
  }

  func end(_ lent: Lent) { giveBack(lent.slot) }

  /// Whether somebody waits to be alone with the index, or to close it.
  var mustEnd: Bool { condition.withLock { pauseCount > 0 || state == .closed } }

  /// - Parameter isLong: the first, which has more memory than others, stays for those who read and are done.
  private func take(forLong isLong: Bool = false) -> Slot? {
    let slot = condition.withLock { () -> Slot? in
      if isLong, slots.isEmpty, state == .wanted {
        let first = Slot(memory)
        first.isFree = true
        slots.append(first)
      }
      while state == .wanted, pauseCount == 0 {
        if let slot = slots.dropFirst(isLong ? 1 : 0).first(where: \.isFree) {
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
    if let slot { prepare(slot) }
    return slot
  }

  /// Opens a connection that is not open yet, and has one forget what it is to forget. The caller uses it.
  private func prepare(_ slot: Slot) {
    let (memory, isStale) = condition.withLock {
      defer { slot.isStale = false }
      return (slot.memory, slot.isStale)
    }
    if isStale, let reader = slot.reader, (try? reader.shrink(to: memory)) == nil { slot.reader = nil }
    if slot.reader == nil { slot.reader = try? open(memory) }
  }

  private func giveBack(_ slot: Slot) {
    let isKept = condition.withLock {
      slot.isFree = slots.contains { $0 === slot }
      if slot.isFree { didUse(1) }
      return slot.isFree
    }
    if !isKept { close([slot]) }
  }

  /// Closes connections that count as used until then.
  private func close(_ slots: [Slot]) {
    for slot in slots { slot.reader = nil }
    condition.withLock { didUse(slots.count) }
  }

  /// Under `condition`.
  private func didUse(_ count: Int) {
    useCount -= count
    condition.broadcast()
  }

  /// Runs `body` while nobody reads here. Whoever would waits for the index's own connection, which the caller has.
  func pausing<Result>(_ body: () throws -> Result) rethrows -> Result {
    condition.withLock {
      pauseCount += 1
      waitUntilUnused()
    }
    defer {
      condition.withLock {
        pauseCount -= 1
        condition.broadcast()
      }
    }
    return try body()
  }

  private func waitUntilUnused() { while useCount > 0 { condition.wait() } }

  /// Whoever reads from now on finds nothing of the index in a connection's memory. They stay open: SQLite would keep the descriptors of
  /// those that are closed.
  func shrinkMemory() { forget(nil, memory: nil) }

  /// As ``shrinkMemory()``; and nobody has one until they are wanted again, or the first has more memory.
  func forget(wanting memory: IndexDatabase.Memory?) {
    forget(memory == nil ? .unwanted : .wanted, memory: memory ?? .little)
  }

  private func forget(_ next: State?, memory: IndexDatabase.Memory?) {
    let free = condition.withLock {
      if let next, state != .closed { state = next }
      if let memory {
        self.memory = memory
        slots.first?.memory = memory
      }
      for slot in slots { slot.isStale = true }
      return takeFree()
    }
    // At once, for the memory that they have; those in use, when they are next used.
    for slot in free {
      if slot.reader != nil { prepare(slot) }
      giveBack(slot)
    }
  }

  /// Ends all connections, and there is none any more. Waits for those that are in use.
  func close() {
    let free = condition.withLock {
      state = .closed
      defer { slots = [] }
      return takeFree()
    }
    close(free)
    condition.withLock { waitUntilUnused() }
  }

  /// Under `condition`.
  private func takeFree() -> [Slot] {
    let free = slots.filter(\.isFree)
    for slot in free { slot.isFree = false }
    useCount += free.count
    return free
  }

  /// For tests.
  var count: Int { condition.withLock { slots.count } }
  var isUnused: Bool { condition.withLock { useCount == 0 } }
}
