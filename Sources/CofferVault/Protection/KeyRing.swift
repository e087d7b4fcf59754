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
    /// They are being taken away.
    case dropping
    case locked
  }

  init(_ keys: UnlockedKeys) {
    metadata = keys.metadata
    state = Mutex(State(keys: keys.classKeys, phase: .unlocked))
  }

  var phase: Phase { state.withLock { $0.phase } }

  /// Whether the keys that a lock takes away are not there, or not for long.
  var areGone: Bool { phase == .locked || phase == .dropping }

  // MARK: Files' keys

  /// Wraps a new file's key. Throws `locked` for class complete unless the vault is unlocked.
  func wrap(_ fileKey: SecretKey, for protection: ProtectionClass) throws -> [UInt8] {
    try keys(creating: protection).wrap(fileKey, for: protection)
  }

  /// Unwraps a file's key. Throws `locked` where its class does not allow it now, and `CryptoError.notAuthentic`.
  func unwrap(_ wrapped: [UInt8], for protection: ProtectionClass) throws -> SecretKey {
    try keys(opening: protection).unwrap(wrapped, for: protection)
  }

  /// The same for a file that somebody has open, who may finish: as long as the keys are there.
  func unwrapInUse(_ wrapped: [UInt8], for protection: ProtectionClass) throws -> SecretKey {
    try keys(finishing: protection).unwrap(wrapped, for: protection)
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

  private func keys(finishing protection: ProtectionClass) throws -> ClassKeys {
    try state.withLock { state in
      guard state.phase == .unlocked || state.phase == .locking || !protection.isLockedAway else {
        throw VaultError.locked
      }
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

  // Under the vault's `transitions`.

  /// Nothing new of the classes that a lock concerns is opened from here on; nil where the keys are gone already.
  func beginLocking() -> (number: Int, isFirst: Bool)? {
    state.withLock { state in
      if state.phase == .locked || state.phase == .dropping { return nil }
      let isFirst = state.phase == .unlocked
      if isFirst {
        state.phase = .locking
        state.turn += 1
      }
      return (state.turn, isFirst)
    }
  }

  /// Whether the keys are to go for the lock `turn`: nobody has unlocked since, and they are there.
  func isDue(turn: Int) -> Bool { state.withLock { $0.phase == .locking && $0.turn == turn } }

  /// Takes the keys away; ``didDrop()`` follows when nobody else has one.
  func drop() {
    let holders = state.withLock { state in
      state.phase = .dropping
      state.keys = state.keys.withoutThoseOfAnUnlockedVault
      state.holders.removeAll { $0.holder == nil }
      return state.holders.compactMap(\.holder)
    }
    for holder in holders { holder.dropKey() }
  }

  func didDrop() { state.withLock { $0.phase = .locked } }

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
