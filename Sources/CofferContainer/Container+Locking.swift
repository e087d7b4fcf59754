public import CofferKeys
public import CofferSystem
internal import CofferVault

/// What a container tells those who show its content. A lock tells the first three of these, unless somebody unlocks
/// within the grace period, and an unlock the last: always in the order in which it happens, and never two at a time.
public enum ContainerEvent: Sendable, Equatable {
  /// The keys of the classes complete and complete-unless-open are about to go.
  case willBecomeUnavailable
  /// The grace period is over: the keys go when every observer has returned. Until then files that are open can still be
  /// read and written, so that what others keep of them can be written back.
  case isBecomingUnavailable
  /// They are gone.
  case didBecomeUnavailable
  /// They are back.
  case didBecomeAvailable
}

/// Whether the keys of the classes complete and complete-unless-open are there.
public enum ContainerLockState: Sendable, Hashable {
  case unlocked
  /// Nothing new is opened, and the keys go when the grace period is over.
  case locking
  case locked
}

/// Ends an observation when it goes.
public final class ContainerObservation: Sendable {
  private let observation: VaultObservation

  init(_ observation: VaultObservation) { self.observation = observation }
}

/// Locking and unlocking while the container stays open: names, and files whose class allows it, can still be used.
extension Container {
  /// Content of the classes complete and complete-unless-open cannot be opened.
  public var isLocked: Bool { vault.isLocked }

  /// As it is at this moment, whatever observers have heard of it yet.
  public var lockState: ContainerLockState {
    switch vault.lockState {
    case .unlocked: .unlocked
    case .locking: .locking
    case .locked: .locked
    }
  }

  /// Locks: nothing of class complete is opened from here on, and the keys go after the grace period, once the calls that
  /// use them are done. On a locked container it does nothing; a shorter grace period hastens the end.
  ///
  /// - Parameter graceSeconds: with 0 the keys are gone when it returns, but for a call by an observer: that is done when
  ///   the event has been told to all.
  public func lock(graceSeconds: Double) { vault.lock(graceSeconds: graceSeconds) }

  /// Brings the keys back. Throws a refusal where the passcode is wrong, also where nothing is locked.
  public func unlock(passcode: SecretBytes) throws {
    var access = try ContainerError.telling(vault.passcodeAttempts) { try vault.unlock(passcode: passcode) }
    settleEscrow(&access)
  }

  /// Calls `observer` on every event, on the thread that locks or unlocks, until the observation goes. It may use the
  /// container. It must not wait for another thread that locks or unlocks.
  public func observe(_ observer: @escaping @Sendable (ContainerEvent) -> Void) -> ContainerObservation {
    ContainerObservation(
      vault.observe { event in
        switch event {
        case .willBecomeUnavailable: observer(.willBecomeUnavailable)
        case .isBecomingUnavailable: observer(.isBecomingUnavailable)
        case .didBecomeUnavailable: observer(.didBecomeUnavailable)
        case .didBecomeAvailable: observer(.didBecomeAvailable)
        }
      })
  }

  /// The id that a folder says it is the vault of, before any key is asked for; nil where it is no vault.
  public static func statedID(at path: String) -> VaultID? { Vault.statedID(at: path) }

  /// Throws where a process has the vault open, and says which one.
  public static func requireUnused(at path: String) throws {
    try ContainerError.catching { try Vault.requireUnused(at: path) }
  }
}
