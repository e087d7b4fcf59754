internal import Synchronization

/// Whoever waits for the store. What may wait is bounded, by number and by the bytes that wait with it, in all and for each
/// party; nobody waits for longer than ``patience``; and parties take turns. What comes beyond is told to come again, and
/// nothing of it has happened.
final class StoreLine: Sendable {
  /// Who asks the store for something: the address of a connection, or a company once the caller is known to be of it.
  struct Asker: Sendable {
    var party: String
    /// Of the request's body, which stays in memory while it waits.
    var bytes = 0
  }

  /// What may wait at once.
  struct Bounds: Sendable {
    /// Requests, in all and of one party.
    var places = 8_000
    var placesForParty = 6_000
    var bytes = 64 << 20
    var bytesForParty = 32 << 20
  }

  /// Nobody in particular is the server itself.
  @TaskLocal static var asker = Asker(party: "")

  /// Lets `body` wait for the store as `company`, where it is known who asks, while the `bytes` of a request stay in memory.
  static func asking<Value>(
    as company: String?, holding bytes: Int, _ body: () async throws -> Value
  ) async throws -> Value {
    var asker = asker
    if let company { asker.party = "company \(company)" }
    asker.bytes = bytes
    return try await $asker.withValue(asker) { try await body() }
  }

  /// Seconds, as ``tick()`` counts them.
  static let patience: Int64 = 20

  private struct Waiting {
    let bytes: Int
    /// By the line's clock.
    let since: Int64
    /// Told whether its turn has come.
    let answer: CheckedContinuation<Bool, Never>
  }

  private struct Queue {
    var waiting: [Waiting] = []
    var bytes = 0
  }

  private struct State {
    var running = 0
    var count = 0
    var bytes = 0
    var clock: Int64 = 0
    /// By party, in the order of arrival; and the parties in the order of their turns.
    var queues: [String: Queue] = [:]
    var turns: [String] = []

    func hasRoom(for asker: Asker, _ bounds: Bounds) -> Bool {
      let own = queues[asker.party] ?? Queue()
      return count < bounds.places && own.waiting.count < bounds.placesForParty
        && bytes + asker.bytes <= bounds.bytes && own.bytes + asker.bytes <= bounds.bytesForParty
    }

    mutating func add(_ waiting: Waiting, of party: String) {
      if queues[party] == nil { turns.append(party) }
      queues[party, default: Queue()].waiting.append(waiting)
      queues[party, default: Queue()].bytes += waiting.bytes
      count += 1
      bytes += waiting.bytes
    }

    /// Takes the first of a party out.
    mutating func take(of party: String) -> Waiting? {
      guard var queue = queues[party], !queue.waiting.isEmpty else { return nil }
      let first = queue.waiting.removeFirst()
      queue.bytes -= first.bytes
      count -= 1
      bytes -= first.bytes
      queues[party] = queue.waiting.isEmpty ? nil : queue
      return first
    }

    mutating func next() -> Waiting? {
      guard !turns.isEmpty else { return nil }
      let party = turns.removeFirst()
      let next = take(of: party)
      if queues[party] != nil { turns.append(party) }
      return next
    }
  }

  /// How many are served at once.
  private let width: Int
  private let bounds: Bounds
  private let state = Mutex(State())

  init(width: Int, bounds: Bounds = Bounds()) {
    self.width = width
    self.bounds = bounds
  }

  /// Runs `body` when its turn has come. Throws `HTTPProblem.busy` where too much waits already, or for too long.
  func run<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
    let asker = Self.asker
    guard await withCheckedContinuation({ enter(asker, $0) }) else { throw HTTPProblem.busy }
    defer { leave() }
    return try await body()
  }

  /// A second has passed: who waited for too long is told so.
  func tick() {
    let late = state.withLock { state -> [Waiting] in
      state.clock += 1
      var late: [Waiting] = []
      for party in state.turns {
        while let first = state.queues[party]?.waiting.first, state.clock - first.since > Self.patience {
          if let taken = state.take(of: party) { late.append(taken) }
        }
      }
      let queues = state.queues
      state.turns.removeAll { queues[$0] == nil }
      return late
    }
    for waiting in late { waiting.answer.resume(returning: false) }
  }

  var waitingCount: Int { state.withLock { $0.count } }
  var isBusy: Bool { state.withLock { $0.running == width } }

  private func enter(_ asker: Asker, _ answer: CheckedContinuation<Bool, Never>) {
    let known = state.withLock { state -> Bool? in
      if state.running < width {
        state.running += 1
        return true
      }
      guard state.hasRoom(for: asker, bounds) else { return false }
      state.add(Waiting(bytes: asker.bytes, since: state.clock, answer: answer), of: asker.party)
      return nil
    }
    if let known { answer.resume(returning: known) }
  }

  private func leave() {
    let next = state.withLock { state -> Waiting? in
      let next = state.next()
      if next == nil { state.running -= 1 }
      return next
    }
    next?.answer.resume(returning: true)
  }
}
