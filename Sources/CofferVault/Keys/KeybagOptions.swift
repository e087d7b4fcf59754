public import CofferCrypto

/// What a keybag holds beside the passcode's slot. Nil means none in a new vault, and as it is in a change.
public struct KeybagOptions: Sendable {
  /// A key by which the vault opens without passcode and device; it takes the place of an earlier one.
  public var recoveryKey: RecoveryKey?
  /// A company's public key, whose private half opens the vault without passcode and device.
  public var escrowKey: HybridPublicKey?
  /// Whether ten wrong passcodes destroy the vault.
  public var wipesAfterTenFailures: Bool?

  public init(
    recoveryKey: RecoveryKey? = nil, escrowKey: HybridPublicKey? = nil, wipesAfterTenFailures: Bool? = nil
  ) {
    self.recoveryKey = recoveryKey
    self.escrowKey = escrowKey
    self.wipesAfterTenFailures = wipesAfterTenFailures
  }
}

/// What a vault's keybag says of itself to whoever may open it.
public struct KeybagSummary: Sendable, Hashable {
  /// How a passcode is derived: its cost and the memory that it takes.
  public let derivation: PasscodeDerivation
  public let hasRecoveryKey: Bool
  /// The company's key that opens the vault, too.
  public let escrowKey: HybridPublicKey?
  public let wipesAfterTenFailures: Bool

  init(_ keybag: Keybag) {
    derivation = keybag.derivation
    hasRecoveryKey = keybag.recoverySlot != nil
    escrowKey = keybag.escrowSlot?.recipient
    wipesAfterTenFailures = keybag.wipesAfterTenFailures
  }
}
