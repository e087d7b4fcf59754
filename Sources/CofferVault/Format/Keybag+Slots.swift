internal import CofferCrypto
internal import CofferKeys

/// The ways to the master key beside the passcode. None of them needs the device.
extension Keybag {
  private static let recoveryLabel = "recovery slot"
  static let escrowInfo = Array("coffer escrow 0".utf8)

  mutating func setRecoveryKey(_ key: RecoveryKey, master: SecretKey, vault: VaultID) throws {
    recoverySlot = try master.wrapped(under: key.key(Self.recoveryLabel, context: vault.bytes))
  }

  mutating func setEscrowKey(_ key: HybridPublicKey, master: SecretKey, vault: VaultID) throws {
    escrowSlot = EscrowSlot(
      recipient: key, box: try key.seal(master, info: Self.escrowInfo, authenticating: vault.bytes))
  }

  /// Throws `noRecoverySlot`, or `wrongRecoveryKey` where it is another vault's key, or one that was replaced.
  func master(_ key: RecoveryKey, vault: VaultID) throws -> SecretKey {
    guard let recoverySlot else { throw VaultError.noRecoverySlot }
    guard
      let master = try? SecretKey(
        unwrapping: recoverySlot, under: key.key(Self.recoveryLabel, context: vault.bytes))
    else { throw VaultError.wrongRecoveryKey }
    return master
  }

  /// Throws `noEscrowSlot`, or `wrongEscrowKey` where it was sealed to another key.
  func master(_ key: HybridKey, vault: VaultID) throws -> SecretKey {
    guard let escrowSlot else { throw VaultError.noEscrowSlot }
    guard let master = try? key.open(escrowSlot.box, info: Self.escrowInfo, authenticating: vault.bytes) else {
      throw VaultError.wrongEscrowKey
    }
    return master
  }

  /// Applies what is asked for beside a passcode.
  mutating func apply(_ options: KeybagOptions, master: SecretKey, vault: VaultID) throws {
    if let recoveryKey = options.recoveryKey { try setRecoveryKey(recoveryKey, master: master, vault: vault) }
    if let escrowKey = options.escrowKey { try setEscrowKey(escrowKey, master: master, vault: vault) }
    if let wipes = options.wipesAfterTenFailures { wipesAfterTenFailures = wipes }
  }
}
