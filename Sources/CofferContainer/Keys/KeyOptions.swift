public import CofferCrypto
internal import CofferVault

/// What opens a vault beside its passcode, and what wrong ones do to it. Nil means none in a new vault, and as it is in a
/// change.
public struct KeyOptions: Sendable {
  /// A key on paper, by which the vault opens without passcode and device.
  public var recoveryKey: RecoveryKey?
  /// A company's public key, whose private half opens the vault without passcode and device.
  public var escrowKey: HybridPublicKey?
  /// Whether ten wrong passcodes destroy the vault.
  public var wipesAfterTenFailures: Bool?

  public init() {}

  var keybag: KeybagOptions {
    KeybagOptions(recoveryKey: recoveryKey, escrowKey: escrowKey, wipesAfterTenFailures: wipesAfterTenFailures)
  }
}

/// What opens a vault, as it says itself.
public struct KeySummary: Sendable, Hashable {
  /// How a passcode is derived: its cost and the memory that it takes.
  public let derivation: PasscodeDerivation
  public let hasRecoveryKey: Bool
  /// The company's key that opens the vault, too.
  public let escrowKey: HybridPublicKey?
  public let wipesAfterTenFailures: Bool
}

/// A key that opens a vault without its passcode and its device.
public enum RecoveryMeans: Sendable {
  case recoveryKey(RecoveryKey)
  /// The private half of the company's key.
  case escrowKey(HybridKey)
  /// The code of a clearing that the company's order brought to this device.
  case clearingCode(RecoveryKey)
}

/// What an unlock made of the company's escrow key.
public enum EscrowChange: Sendable, Hashable {
  /// The vault is sealed to it now.
  case added(HybridPublicKey)
  /// The company asks for it no more, and it opens the vault no more.
  case removed
}

/// What is left of a vault that was wiped.
public struct WipeOutcome: Sendable, Hashable {
  public enum Keys: Sendable, Hashable {
    /// They were in the key store, and are destroyed.
    case destroyed
    /// An earlier wipe had begun to destroy them; what was left of them went now.
    case destroyedBefore
    /// The key store had none, and the folder nothing that a key opens: the end of an earlier wipe.
    case absent
  }

  public let keys: Keys
  /// Copies of the vault that were made before open with its recovery key; nil where nothing is left that says.
  public let hadRecoveryKey: Bool?
  /// Copies of the vault that were made before open with the company's escrow key; nil where nothing is left that says.
  public let hadEscrowKey: Bool?
  /// The process that had the vault open, or 0 where it is not known; nil where everything is gone.
  public let holder: Int32?
}
