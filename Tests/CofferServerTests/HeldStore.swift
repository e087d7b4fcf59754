import Synchronization

@testable import CofferServer

/// A store that takes as long as a test likes, in front of a real one.
final class HeldStore: PolicyStore {
  private struct State {
    var isReadingHeld = false
    var isWritingHeld = false
    var waiting: [CheckedContinuation<Void, Never>] = []
    var askers: [StoreLine.Asker] = []
    var writeCount = 0
  }

  private let store: any PolicyStore
  private let state = Mutex(State())

  init(_ store: any PolicyStore) { self.store = store }

  func hold(reading: Bool = false, writing: Bool = false) {
    let waiting = state.withLock { state in
      (state.isReadingHeld, state.isWritingHeld) = (reading, writing)
      defer { state.waiting = [] }
      return state.waiting
    }
    // Each looks again whether it is held.
    for one in waiting { one.resume() }
  }

  /// Requests that are in the store now.
  var heldCount: Int { state.withLock { $0.waiting.count } }

  /// Changes that were begun, or wait.
  var writeCount: Int { state.withLock { $0.writeCount } }

  /// For whom the store was used, in order, since this was last asked.
  func takeAskers() -> [StoreLine.Asker] {
    state.withLock { state in
      defer { state.askers = [] }
      return state.askers
    }
  }

  func read<Value: Sendable>(_ body: @Sendable (any StoreTransaction) throws -> Value) async throws -> Value {
    state.withLock { $0.askers.append(StoreLine.asker) }
    await wait { $0.isReadingHeld }
    return try await store.read(body)
  }

  func write<Value: Sendable>(_ body: @Sendable (any StoreTransaction) throws -> Value) async throws -> Value {
    state.withLock { state in
      state.askers.append(StoreLine.asker)
      state.writeCount += 1
    }
    await wait { $0.isWritingHeld }
    return try await store.write(body)
  }

  func version() throws -> Int64 { try store.version() }

  private func wait(_ isHeld: (borrowing State) -> Bool) async {
    while state.withLock({ isHeld($0) }) {
      await withCheckedContinuation { continuation in
        let goesOn = state.withLock { state in
          if isHeld(state) { state.waiting.append(continuation) }
          return !isHeld(state)
        }
        if goesOn { continuation.resume() }
      }
    }
  }
}
