internal import CofferSystem
internal import Synchronization

/// What the threads of a mount are at that answer its kernel.
final class Turns: Sendable {
  private let turns = Mutex<[Turn]>([])

  /// One thread more.
  func add() -> Turn {
    let turn = Turn()
    turns.withLock { $0.append(turn) }
    return turn
  }

  /// That thread is at nothing any more.
  func remove(_ turn: Turn) { turns.withLock { turns in turns.removeAll { $0 === turn } } }

  /// What each is at that may have a request now.
  fileprivate var underWay: [(turn: Turn, number: UInt64)] {
    turns.withLock { turns in
      turns.compactMap { turn in turn.underWay.map { (turn, $0) } }
    }
  }
}

/// What one thread is at. Changed by that thread alone.
final class Turn: Sendable {
  /// The calling thread's, where it answers requests.
  @TaskLocal static var own: Turn?

  /// Odd from before the thread asks for a request until it has answered it, or has got none.
  private let count = Atomic<UInt64>(0)

  fileprivate var underWay: UInt64? {
    let present = count.load(ordering: .sequentiallyConsistent)
    return present.isMultiple(of: 2) ? nil : present
  }

  fileprivate func isStill(at number: UInt64) -> Bool { count.load(ordering: .acquiring) == number }

  /// The thread asks for a request.
  func begin() {
    count.store(count.load(ordering: .relaxed) + 1, ordering: .sequentiallyConsistent)
  }

  /// The thread has got none, or has answered it.
  func end() { count.store(count.load(ordering: .relaxed) + 1, ordering: .releasing) }

  /// The same for the calling thread, where it answers requests.
  static func pausingOwn(_ body: () -> Void) {
    if let own { own.pausing(body) } else { body() }
  }

  /// Runs `body`, in which the thread waits for others, or for the disk, in the middle of a request: nothing that is let go of is heard by that.
  func pausing(_ body: () -> Void) {
    guard underWay != nil else { return body() }
    end()
    defer { begin() }
    body()
  }
}

/// Tells when all has been heard that the kernel had said, and what it had to say to the answers: no time could tell, for a thread may have
/// taken a request and lack the processor.
///
/// For one thread, which does not count where it pauses in its own turn.
struct Hearing {
  private let turns: Turns
  private let isAllTaken: () -> Bool
  /// What has to end; nil until all requests are taken.
  private var awaited: [(turn: Turn, number: UInt64)]?
  private var roundsLeft = Self.roundCount

  /// The kernel closes a file when what it reads ahead by itself is answered, and gives it back when the closing is.
  private static let roundCount = 3

  /// So many requests never wait at once: the kernel gives them out in their order, and it is not waited for a moment without any that programs
  /// may never leave.
  private static let takenLimit = 4096

  /// - Parameters:
  ///   - isAllTaken: whether the kernel has no request that nobody has taken.
  ///   - takenCount: requests that have been taken, since whenever.
  init(_ turns: Turns, isAllTaken: @escaping () -> Bool, takenCount: @escaping () -> Int) {
    self.turns = turns
    var start = takenCount()
    self.isAllTaken = {
      guard isAllTaken() || takenCount() &- start >= Self.takenLimit else { return false }
      start = takenCount()
      return true
    }
  }

  /// To be asked again and again.
  mutating func isOver() -> Bool {
    while roundsLeft > 0 {
      if awaited == nil {
        guard isAllTaken() else { return false }
        awaited = turns.underWay
      }
      awaited?.removeAll { !$0.turn.isStill(at: $0.number) }
      guard awaited?.isEmpty ?? true else { return false }
      awaited = nil
      roundsLeft -= 1
    }
    return true
  }
}
