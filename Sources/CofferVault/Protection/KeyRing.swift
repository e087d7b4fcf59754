internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// The class keys that are there at the moment: all of them while the vault is unlocked; without those of the classes
/// complete and complete-unless-open while it is locked.
///
/// The one place that gives a file's key, or takes one to be wrapped.
final class KeyRing: Sendable {
  let metadata: SecretKey
  private let state: Mutex<State>

  private struct State {
    var keys: ClassKeys
    var phase: Phase
    /// Counts locks and unlocks, so that what a lock planned does not happen to a later one.
    var turn = 0
    var holders: [Weak] = []
  }

  private struct Weak: Sendable { weak var holder: (any KeyHolder)? }

  enum Phase: Sendable, Equatable {
    case unlocked
    /// Nothing new is opened, and who has a file open may finish.
    case locking
    case locked
  }

  init(_ keys: UnlockedKeys) {
    metadata = keys.metadata
    state = Mutex(State(keys: keys.classKeys, phase: .unlocked))
  }

  var phase: Phase { state.withLock { $0.phase } }

  // MARK: Files' keys

  /// Wraps a new file's key. Throws `locked` for class complete unless the vault is unlocked.
  func wrap(_ fileKey: SecretKey, for protection: ProtectionClass) throws -> [UInt8] {
    try keys(creating: protection).wrap(fileKey, for: protection)
  }

  /// Unwraps a file's key. Throws `locked` where its class does not allow it now, and `CryptoError.notAuthentic`.
  func unwrap(_ wrapped: [UInt8], for protection: ProtectionClass) throws -> SecretKey {
    try keys(opening: protection).unwrap(wrapped, for: protection)
  }

  /// Throws `locked` where a file of this class cannot be opened now.
  func requireOpening(_ protection: ProtectionClass) throws { _ = try keys(opening: protection) }

  /// Throws `locked` where a file of this class cannot be made now.
  func requireCreating(_ protection: ProtectionClass) throws { _ = try keys(creating: protection) }

  private func keys(opening protection: ProtectionClass) throws -> ClassKeys {
    try state.withLock { state in
      guard state.phase == .unlocked || !protection.isLockedAway else { throw VaultError.locked }
      return state.keys
    }
  }

  private func keys(creating protection: ProtectionClass) throws -> ClassKeys {
    try state.withLock { state in
      guard state.phase == .unlocked || protection != .complete else { throw VaultError.locked }
      return state.keys
    }
  }

  // MARK: Locking

  /// Nothing new of the classes that a lock concerns is opened from here on; nil where the keys are gone already.
  func beginLocking() -> (number: Int, isFirst: Bool)? {
    state.withLock { state in
      if state.phase == .locked { return nil }
      let isFirst = state.phase == .unlocked
      if isFirst {
        state.phase = .locking
        state.turn += 1
      }
      return (state.turn, isFirst)
    }
  }

  /// Drops the keys, unless somebody has unlocked since `turn`; whether it did.
  func drop(turn: Int) -> Bool {
    let holders = state.withLock { state -> [any KeyHolder]? in
      guard state.phase == .locking, state.turn == turn else { return nil }
      state.phase = .locked
      state.keys = state.keys.withoutThoseOfAnUnlockedVault
      state.holders.removeAll { $0.holder == nil }
      return state.holders.compactMap(\.holder)
    }
    guard let holders else { return false }
    for holder in holders { holder.dropKey() }
    return true
  }

  /// Puts the keys back; whether they were away, or about to go.
  func restore(_ keys: ClassKeys) -> Bool {
    state.withLock { state in
      guard state.phase != .unlocked else { return false }
      state.phase = .unlocked
      state.turn += 1
      state.keys = keys
      return true
    }
  }

  /// Will be told when the keys go, as long as it lives. Throws `locked` where they are gone.
  func hold(_ holder: any KeyHolder, for protection: ProtectionClass) throws {
    try state.withLock { state in
      guard state.phase == .unlocked || protection != .complete else { throw VaultError.locked }
      if protection != .complete { return }
      state.holders.removeAll { $0.holder == nil }
      state.holders.append(Weak(holder: holder))
    }
  }
}

/// Something that has the key of a file of class complete beside the file's node: an import at work.
protocol KeyHolder: AnyObject, Sendable {
  /// Forgets the key; returns when nobody uses it any more.
  func dropKey()
}

extension ProtectionClass {
  /// A lock keeps files of this class from being opened.
  var isLockedAway: Bool {
    switch self {
    case .complete, .completeUnlessOpen: true
    case .untilFirstUnlock, .none: false
    }
  }
}
