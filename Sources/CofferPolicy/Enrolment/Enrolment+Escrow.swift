public import CofferCrypto

extension Enrolment {
  /// The key that the company asks to have its devices' vaults sealed to.
  public struct EscrowKey: Hashable, Sendable {
    public let key: HybridPublicKey
    /// When the root key delegated it. One that was delegated earlier than another does not come back after it.
    public let issuedAt: Int64
  }

  /// The escrow key that the policy asks for, which the company's root key must have delegated for this; nil where the
  /// policy asks for none. So a stolen signing key has no vault sealed to a key of its own.
  ///
  /// It holds by the company's time, the latest that it signed.
  ///
  /// Throws where the policy asks for a key and shows none, or one that does not hold.
  public func escrowKey() throws(PolicyRefusal) -> EscrowKey? {
    let managed = policy.settings.managedSettings
    guard managed.isEscrowAsked else { return nil }
    guard let text = managed.escrowDelegation else { throw .malformed("delegation") }
    let delegation = try SignedDelegation(verifying: text, root: root, tenant: tenant).delegation
    guard delegation.use == .escrow, let bytes = Base64URL.decode(delegation.key),
      let key = try? HybridPublicKey(bytes: bytes)
    else { throw .malformed("delegation") }
    guard trustedTime <= delegation.notAfter else { throw .expired(.delegation) }
    return EscrowKey(key: key, issuedAt: delegation.issuedAt)
  }

  /// What a clearing of this device's passcode is bound to, beside its vault: the device of the company.
  public var clearingContext: [UInt8] { Self.clearingContext(tenant: tenant, device: device) }

  public static func clearingContext(tenant: String, device: String) -> [UInt8] {
    // Identifiers have no such byte.
    Array(tenant.utf8) + [0] + Array(device.utf8)
  }
}
