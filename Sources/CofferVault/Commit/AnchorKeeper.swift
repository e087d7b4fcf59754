internal import CofferKeys
internal import CofferSystem
internal import Synchronization

/// Keeps the newest state of the vault in the key store.
///
/// With it goes where the vault lies: the folder whose state is the newest is the vault, and another one a copy.
///
/// Each write there costs two syncs, so that it follows commits at a bounded rate, and at the end. What a thief can take
/// back unseen is what was committed since the last write.
final class AnchorKeeper: Sendable {
  /// Seconds between two writes at least.
  private static let interval: Int64 = 1

  private let keyStore: any KeyStore
  private let vault: VaultID
  private let time: any TimeSource
  private let place: FolderPlace?
  /// Held while the key store is written, and taken before `state`, which nobody holds for so long.
  private let writing = Mutex<Void>(())
  private let state: Mutex<State>

  private struct State {
    var isBound: Bool?
    var keybagDigest: [UInt8]
    /// Of the keybag that a change is about to put in its place.
    var nextKeybagDigest: [UInt8]?
    /// The newest commit that was followed: those of two threads may come here in the other order.
    var newest: CommittedRoot?
    /// `newest` is not in the key store yet.
    var isWaiting = false
    var lastWrite: Timestamp?
    var isPlaceKnown = false
    var isEnded = false

    mutating func take(_ root: CommittedRoot) {
      if let newest, newest.generation > root.generation { return }
      newest = root
      isWaiting = true
    }
  }

  init(
    _ keyStore: any KeyStore, vault: VaultID, keybagDigest: [UInt8], isBound: Bool?, time: any TimeSource,
    place: FolderPlace? = nil
  ) {
    self.place = place
    self.keyStore = keyStore
    self.vault = vault
    self.time = time
    state = Mutex(State(isBound: isBound, keybagDigest: keybagDigest))
  }

  /// Whether the vault belongs to somebody beside its owner; nil where the key store's word is missing.
  var isBound: Bool? { state.withLock { $0.isBound } }

  /// Whether a keybag is the one that the vault has, or that a change is about to give it.
  func accepts(keybagDigest digest: [UInt8]) -> Bool {
    state.withLock { digest == $0.keybagDigest || digest == $0.nextKeybagDigest }
  }

  /// Takes note of a commit; writes it where the last write is long enough ago. Does not wait for a write of another commit:
  /// what this one leaves is written a while later, as what the rate holds back is.
  func follow(_ root: CommittedRoot) throws {
    let isDue = state.withLock { state in
      state.take(root)
      guard let last = state.lastWrite else { return true }
      let now = time.now()
      // A clock that was set back must not hold the anchor still.
      return now < last || now.seconds - last.seconds >= Self.interval
    }
    if isDue { try writing.withLockIfAvailable { _ in try write() } }
  }

  /// Writes what waits.
  func flush() throws { try writing.withLock { _ in try write() } }

  /// Writes nothing more: the vault is about to be another process's.
  func end() { writing.withLock { _ in state.withLock { $0.isEnded = true } } }

  /// Writes at once that the vault belongs to somebody beside its owner. Throws `needsReopening` after the end.
  func bind(_ root: CommittedRoot) throws { try write(root) { $0.isBound = true } }

  /// Writes at once that the keybag `present` is there, and that `next` may take its place, or nothing else where it is
  /// nil.
  func followKeybag(_ present: [UInt8], next: [UInt8]?, _ root: CommittedRoot) throws {
    try write(root) { state in
      state.keybagDigest = present
      state.nextKeybagDigest = next
    }
  }

  private func write(_ root: CommittedRoot, with change: (inout State) -> Void) throws {
    try writing.withLock { _ in
      try state.withLock { state in
        guard !state.isEnded else { throw VaultError.needsReopening }
        change(&state)
        state.take(root)
        // Also where that commit was written already: the change was not.
        state.isWaiting = true
      }
      try write()
    }
  }

  /// Under `writing`.
  private func write() throws {
    let now = time.now()
    let (found, wasPlaceKnown) = state.withLock { state -> (Anchor?, Bool) in
      guard let root = state.newest, state.isWaiting, !state.isEnded else { return (nil, state.isPlaceKnown) }
      let anchor = Anchor(
        branch: root.branch, generation: root.generation, commit: root.commit,
        keybagDigest: state.keybagDigest, nextKeybagDigest: state.nextKeybagDigest, isBound: state.isBound ?? true)
      return (anchor, state.isPlaceKnown)
    }
    guard let anchor = found else { return }
    try keyStore.write(anchor.secretBytes, as: .anchor, of: vault)
    // Behind the anchor: alone it says of a wipe that it was cut. Where it cannot be stored, a wipe asks more than it needs to, which is
    // no reason to keep a commit from its anchor.
    var isPlaceKnown = wasPlaceKnown
    if !isPlaceKnown, let place { isPlaceKnown = (try? place.store(in: keyStore, for: vault)) != nil }
    state.withLock { $0.isPlaceKnown = isPlaceKnown }
    state.withLock { state in
      // A commit may have come meanwhile.
      state.isWaiting = state.newest?.generation != anchor.generation
      state.lastWrite = now
    }
  }
}
