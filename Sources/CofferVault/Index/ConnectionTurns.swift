internal import Foundation
internal import Synchronization

/// Who uses SQLite's connection: one thread at a time.
///
/// Whoever has it for long lets readers have their turn in between, and runs for them what they came for: so they wait for
/// some rows, and not for the whole of a commit's transaction, and no thread but theirs has to be woken.
final class ConnectionTurns: @unchecked Sendable {
  private let condition = NSCondition()
  // Under `condition`.
  private var isTaken = false
  /// Whoever has the connection holds no lock that a reader takes. Touched only by who has it.
  private var letsReadersIn = false
  private var waiting: [Reader] = []
  /// Readers in `waiting`, for who must not take the lock to see that there are none.
  private let waitingCount = Atomic(0)

  private final class Reader {
    /// Both are called by who has the connection.
    let mayRead: () -> Bool
    let body: (_ isLetIn: Bool) -> Void
    /// May not read for now, which is not asked again: what it waits for is the connection. Touched by who has that.
    var isRefused = false
    /// Under `condition`.
    var isDone = false

    init(_ mayRead: @escaping () -> Bool, _ body: @escaping (Bool) -> Void) {
      (self.mayRead, self.body) = (mayRead, body)
    }
  }

  /// Runs `body` while nobody else uses the connection, but for readers where it lets them in.
  func take<Result>(lettingReadersIn: Bool, _ body: () throws -> Result) rethrows -> Result {
    condition.lock()
    while isTaken { condition.wait() }
    isTaken = true
    condition.unlock()
    letsReadersIn = lettingReadersIn
    defer { giveBack() }
    return try body()
  }

  /// Runs `body`, which reads, while nobody else uses the connection: on this thread, or on one that lets it in.
  ///
  /// - Parameters:
  ///   - mayRead: whether that thread's work leaves what is to be read as it was.
  ///   - body: is told whether it runs in the midst of that work.
  func read(where mayRead: @escaping () -> Bool, _ body: @escaping (_ isLetIn: Bool) -> Void) {
    condition.lock()
    if isTaken, waitForTurn(Reader(mayRead, body)) { return condition.unlock() }
    isTaken = true
    condition.unlock()
    letsReadersIn = false
    defer { giveBack() }
    body(false)
  }

  /// Whether somebody else has read for it; else the connection is free. Called and returns under `condition`.
  private func waitForTurn(_ reader: Reader) -> Bool {
    waiting.append(reader)
    waitingCount.store(waiting.count, ordering: .relaxed)
    while isTaken, !reader.isDone { condition.wait() }
    if reader.isDone { return true }
    waiting.removeAll { $0 === reader }
    waitingCount.store(waiting.count, ordering: .relaxed)
    return false
  }

  /// Lets those who wait to read have their turn, as far as they may, one after the other while `goesOn`. Called by who has the
  /// connection. Whether any had one.
  func letReadersIn(while goesOn: () -> Bool = { true }) -> Bool {
    guard letsReadersIn, waitingCount.load(ordering: .relaxed) > 0 else { return false }
    var hasRead = false
    // They wait as long as the connection is taken, so that none goes; those that come meanwhile have their turn next time.
    for reader in condition.withLock({ waiting }) where !reader.isRefused {
      guard goesOn() else { break }
      reader.isRefused = !reader.mayRead()
      if reader.isRefused { continue }
      reader.body(true)
      hasRead = true
      condition.withLock {
        reader.isDone = true
        waiting.removeAll { $0.isDone }
        waitingCount.store(waiting.count, ordering: .relaxed)
        condition.broadcast()
      }
    }
    return hasRead
  }

  /// For tests.
  var isInUse: Bool { condition.withLock { isTaken } }

  /// How many wait to read, for tests.
  var readerCount: Int { waitingCount.load(ordering: .relaxed) }

  private func giveBack() {
    condition.withLock {
      isTaken = false
      condition.broadcast()
    }
  }
}
