import CofferAPI
import CofferClient
import CofferCrypto
import CofferPolicy
import Synchronization

/// A device in memory, and what a link made it do.
final class FakeDevice: LinkedDevice {
  struct State {
    var enrolment: Enrolment
    var book = OrderBook()
    var carriedOut: [DeviceCommand] = []
    var wipeReceipts: [String] = []
    var outcome = OrderOutcome.done
    var decisions: [DecisionsRequest.Entry] = []
    /// Thrown when the orders are to be stored.
    var cannotKeep = false
    /// Thrown when a policy is to be stored.
    var cannotTake = false
    var isReadOnly = false
    /// SHA-256 of clearings.
    var taken: Set<String> = []
  }

  struct CannotStore: Error {}

  private let key: SigningKey
  private let state: Mutex<State>

  init(_ enrolment: Enrolment, _ key: SigningKey) {
    self.key = key
    state = Mutex(State(enrolment: enrolment))
  }

  var current: State { state.withLock { $0 } }
  func update(_ change: (inout sending State) -> Void) { state.withLock { change(&$0) } }

  func enrolment() throws -> Enrolment { current.enrolment }
  var isReadOnly: Bool { current.isReadOnly }
  func deviceKey() throws -> SigningKey { key }
  func take(_ enrolment: Enrolment) throws {
    if current.cannotTake { throw CannotStore() }
    update { $0.enrolment = enrolment }
  }
  func report(_ enrolment: Enrolment) throws -> DeviceReport {
    DeviceReport(appliedRevision: enrolment.policy.revision)
  }

  func orders() throws -> OrderBook { current.book }
  func keep(_ orders: OrderBook) throws {
    if current.cannotKeep { throw CannotStore() }
    update { $0.book = orders }
  }
  func carryOut(_ order: DeviceCommand) throws -> OrderOutcome {
    update { $0.carriedOut.append(order) }
    return current.outcome
  }
  func hasTaken(clearing digest: String) -> Bool { current.taken.contains(digest) }
  func wipe(receipt: String) throws { update { $0.wipeReceipts.append(receipt) } }

  func undeliveredDecisions() throws -> [DecisionsRequest.Entry] { current.decisions }
  func noteDecisions(deliveredThrough number: Int64, companyHas complete: Int64) throws {
    update { $0.decisions.removeAll { $0.number <= number } }
  }
}

/// Time that passes when a test says so. Waits between connections are over at once, as many as the test allows.
final class FakePace: LinkPace {
  private struct State {
    var waits: [Duration] = []
    var allowed: Int
    /// Silences that passed before anybody waited for them.
    var passed = 0
    var sleeper: AsyncStream<Void>.Continuation?
  }

  static let silence = Duration.seconds(60)
  private let state: Mutex<State>
  private let luck: Double

  init(reconnections: Int = .max, chance: Double = 1) {
    state = Mutex(State(allowed: reconnections))
    luck = chance
  }

  /// How long the link waited before each of its connections but the first.
  var waits: [Duration] { state.withLock { $0.waits } }
  /// Nothing was heard for as long as a stream may be silent.
  func passSilence() {
    state.withLock { state in
      guard let sleeper = state.sleeper else {
        state.passed += 1
        return
      }
      state.sleeper = nil
      sleeper.yield()
    }
  }

  func chance() -> Double { luck }

  func wait(_ duration: Duration) async throws {
    if duration == Self.silence {
      let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
      state.withLock { state in
        state.sleeper = continuation
        guard state.passed > 0 else { return }
        state.passed -= 1
        state.sleeper = nil
        continuation.yield()
      }
      var permits = stream.makeAsyncIterator()
      _ = await permits.next()
      return try Task.checkCancellation()
    }
    let isOver = state.withLock { state in
      state.waits.append(duration)
      return state.waits.count > state.allowed
    }
    // The test has seen what it wanted; it cancels.
    if isOver { try await Task.sleep(for: .seconds(3600)) }
  }
}
