internal import Synchronization

/// The store as the server's routes see it: behind a line for what reads and one for what changes (``StoreLine``), so that a
/// slow one holds up no more than it must, and with a memory for damage.
final class QueuedStore: PolicyStore {
  /// Seconds in which somebody who asks whether the store answers is told.
  static let probePatience: Int64 = 5

  private struct Probes {
    var clock: Int64 = 0
    var waiting: [(probe: Probe, since: Int64)] = []
  }

  private let store: any PolicyStore
  /// As many as the store reads for at once, and one that changes: more would wait behind the same lock.
  private let readers: StoreLine
  private let writers: StoreLine
  private let probes = Mutex(Probes())
  private let damage = Atomic(false)

  init(_ store: any PolicyStore, bounds: StoreLine.Bounds = StoreLine.Bounds()) {
    self.store = store
    readers = StoreLine(width: 5, bounds: bounds)
    writers = StoreLine(width: 1, bounds: bounds)
  }

  func read<Value: Sendable>(_ body: @Sendable (any StoreTransaction) throws -> Value) async throws -> Value {
    try await readers.run { try await noting { try await store.read(body) } }
  }

  func write<Value: Sendable>(_ body: @Sendable (any StoreTransaction) throws -> Value) async throws -> Value {
    try await writers.run { try await noting { try await store.write(body) } }
  }

  func version() throws -> Int64 { try store.version() }

  /// Throws unless the store answers soon, and was not found damaged.
  func demandAnswer() async throws {
    guard !damage.load(ordering: .relaxed) else { throw StoreError.damagedFile }
    let probe = Probe()
    probes.withLock { $0.waiting.append((probe, $0.clock)) }
    defer { probes.withLock { probes in probes.waiting.removeAll { $0.probe === probe } } }
    Task {
      do {
        _ = try await read { try $0.tenant(id: "") }
        probe.end(.success(()))
      } catch {
        probe.end(.failure(error))
      }
    }
    try await probe.result()
  }

  /// A second has passed.
  func tick() {
    readers.tick()
    writers.tick()
    let late = probes.withLock { probes in
      probes.clock += 1
      return probes.waiting.filter { probes.clock - $0.since >= Self.probePatience }.map(\.probe)
    }
    for probe in late { probe.end(.failure(HTTPProblem.unavailable)) }
  }

  /// Requests that wait, to read and to change.
  var waitingCount: Int { readers.waitingCount + writers.waitingCount }
  var probeCount: Int { probes.withLock { $0.waiting.count } }

  private func noting<Value>(_ body: () async throws -> Value) async throws -> Value {
    do {
      return try await body()
    } catch let error as StoreError {
      if error == .damagedFile { damage.store(true, ordering: .relaxed) }
      throw error
    }
  }
}

/// One question that is answered once, by whoever is first.
private final class Probe: Sendable {
  private struct State {
    var result: Result<Void, any Error>?
    var waiting: CheckedContinuation<Void, any Error>?
  }

  private let state = Mutex(State())

  func result() async throws {
    try await withCheckedThrowingContinuation { continuation in
      let known = state.withLock { state -> Result<Void, any Error>? in
        if state.result == nil { state.waiting = continuation }
        return state.result
      }
      if let known { continuation.resume(with: known) }
    }
  }

  func end(_ result: Result<Void, any Error>) {
    let waiting = state.withLock { state -> CheckedContinuation<Void, any Error>? in
      guard state.result == nil else { return nil }
      state.result = result
      defer { state.waiting = nil }
      return state.waiting
    }
    waiting?.resume(with: result)
  }
}
