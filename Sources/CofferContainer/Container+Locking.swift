public import CofferKeys
public import CofferSystem
internal import CofferVault

/// What a container tells those who show its content.
public enum ContainerEvent: Sendable, Equatable {
  /// The keys of the classes complete and complete-unless-open are about to go.
  case willBecomeUnavailable
  /// They are gone.
  case didBecomeUnavailable
  /// They are back.
  case didBecomeAvailable
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

  /// Locks: nothing of class complete is opened from here on, and the keys go after the grace period, once the calls that
  /// use them are done. On a locked container it does nothing; a shorter grace period hastens the end.
  ///
  /// - Parameter graceSeconds: with 0 the keys are gone when it returns.
  public func lock(graceSeconds: Double) { vault.lock(graceSeconds: graceSeconds) }

  /// Brings the keys back. Throws a refusal where the passcode is wrong, also where nothing is locked.
  public func unlock(passcode: SecretBytes) throws {
    try ContainerError.telling(vault.passcodeAttempts) { try vault.unlock(passcode: passcode) }
  }

  /// Calls `observer` on every event, on the thread that locks or unlocks, until the observation goes.
  public func observe(_ observer: @escaping @Sendable (ContainerEvent) -> Void) -> ContainerObservation {
    ContainerObservation(
      vault.observe { event in
        switch event {
        case .willBecomeUnavailable: observer(.willBecomeUnavailable)
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
