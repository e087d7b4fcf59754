internal import NIOCore
internal import Synchronization

/// What was read from the store, for as long as nobody has committed anything since, in this process or another.
///
/// The store's version is asked before each use, so that an entry is never older than the last commit before the request. One
/// that is read while somebody commits is kept under the version from before, and the next request reads it again. What is
/// absent is not kept: whoever asks for what is not there takes no memory. A store that fails is asked, and fails, each time.
struct ReadCache: Sendable {
  /// What an entry holds. Whoever looks up tokens has their hashes.
  enum Key: Hashable {
    case apiToken([UInt8])
    case deviceToken([UInt8])
    case items(tenant: String)
    case published(tenant: String)
    case groups(device: String)
  }

  /// Above it, all entries go. A company with so many devices has read each of them once in a quarter of an hour.
  static let capacity = 20_000

  private final class State: Sendable {
    let entries = Mutex((version: Int64.min, values: [Key: any Sendable]()))
  }

  private let store: any PolicyStore
  private let state = State()

  init(_ store: any PolicyStore) { self.store = store }

  /// What `read` finds in the store. Equal keys are for equal types.
  func value<Value: Sendable>(
    _ key: Key, _ read: @Sendable (any StoreTransaction) throws -> Value?
  ) async throws -> Value? {
    let version = try store.version()
    let kept = state.entries.withLock { $0.version == version ? $0.values[key] : nil }
    if let kept = kept as? Value { return kept }
    guard let value = try await store.read(read) else { return nil }
    state.entries.withLock { entries in
      if entries.version < version {
        entries = (version, [:])
      } else if entries.version > version {
        return
      }
      if entries.values.count >= Self.capacity { entries.values.removeAll() }
      entries.values[key] = value
    }
    return value
  }
}
