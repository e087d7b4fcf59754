internal import Synchronization

/// Whoever waits for the one thread that derives passwords. Nobody fills the line for the others: each account and each
/// address has few places, and addresses take turns. Nobody waits for longer than ``patience``.
final class FairLine: Sendable {
  /// Who waits. An address that stands for many, such as a proxy's on this machine, is nil.
  struct Party: Sendable {
    let account: String
    let address: String?

    /// - Parameter address: of the connection.
    init(account: String, address: String) {
      self.account = account
      self.address = SignInLimiter.origin(of: address)
    }

    /// Those who share it take their turns together.
    fileprivate var turn: String { address.map { "address \($0)" } ?? "account \(account)" }
  }

  static let places = 40
  static let placesForAccount = 3
  static let placesForAddress = 6
  /// Seconds, as ``tick()`` counts them.
  static let patience: Int64 = 20

  private struct Waiting {
    let party: Party
    /// By the line's clock.
    let since: Int64
    /// Told whether its turn has come.
    let answer: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var isTaken = false
    var clock: Int64 = 0
    /// By turn, in the order of arrival; and the turns in their order.
    var queues: [String: [Waiting]] = [:]
    var turns: [String] = []

    var waiting: some Sequence<Waiting> { queues.values.lazy.flatMap(\.self) }

    func hasRoom(for party: Party) -> Bool {
      var (all, account, address) = (0, 0, 0)
      for waiting in waiting {
        all += 1
        if waiting.party.account == party.account { account += 1 }
        if let own = party.address, waiting.party.address == own { address += 1 }
      }
      return all < FairLine.places && account < FairLine.placesForAccount && address < FairLine.placesForAddress
    }

    /// Takes those out who have waited for too long.
    mutating func takeLate() -> [Waiting] {
      var late: [Waiting] = []
      for turn in turns {
        while let first = queues[turn]?.first, clock - first.since > FairLine.patience {
          queues[turn]?.removeFirst()
          late.append(first)
        }
        if queues[turn]?.isEmpty == true { queues[turn] = nil }
      }
      let queues = queues
      turns.removeAll { queues[$0] == nil }
      return late
    }

    mutating func next() -> Waiting? {
      guard !turns.isEmpty else { return nil }
      let turn = turns.removeFirst()
      guard var queue = queues[turn], !queue.isEmpty else { return nil }
      let first = queue.removeFirst()
      queues[turn] = queue.isEmpty ? nil : queue
      if !queue.isEmpty { turns.append(turn) }
      return first
    }
  }

  private let state = Mutex(State())

  /// Runs `body` when its turn has come. Throws `HTTPProblem.busy` where the party, or all together, wait too often,
  /// and for who has waited too long.
  func run<Value: Sendable>(_ party: Party, _ body: @Sendable () async throws -> Value) async throws -> Value {
    guard await withCheckedContinuation({ enter(party, $0) }) else { throw HTTPProblem.busy }
    defer { leave() }
    return try await body()
  }

  /// A second has passed.
  func tick() {
    let late = state.withLock { state in
      state.clock += 1
      return state.takeLate()
    }
    for waiting in late { waiting.answer.resume(returning: false) }
  }

  var waitingCount: Int { state.withLock { state in state.waiting.reduce(0) { count, _ in count + 1 } } }

  private func enter(_ party: Party, _ answer: CheckedContinuation<Bool, Never>) {
    let known = state.withLock { state -> Bool? in
      if !state.isTaken {
        state.isTaken = true
        return true
      }
      guard state.hasRoom(for: party) else { return false }
      if state.queues[party.turn] == nil { state.turns.append(party.turn) }
      state.queues[party.turn, default: []].append(Waiting(party: party, since: state.clock, answer: answer))
      return nil
    }
    if let known { answer.resume(returning: known) }
  }

  private func leave() {
    let next = state.withLock { state -> Waiting? in
      let next = state.next()
      state.isTaken = next != nil
      return next
    }
    next?.answer.resume(returning: true)
  }
}
