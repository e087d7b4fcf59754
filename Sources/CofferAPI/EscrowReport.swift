internal import CofferPolicy

/// What a device hands to its company for whoever holds the escrow key: opens nothing without that key. All but `tenant` is
/// base64url.
public struct EscrowReport: Codable, Hashable, Sendable {
  public var tenant: String
  /// The vault's id, 16 bytes.
  public var vault: String
  /// The company's public key, 32 bytes.
  public var escrowKey: String
  /// The vault's master key, sealed to it (RFC 9180): 32 and 48 bytes.
  public var encapsulatedKey: String
  public var sealedKey: String
  /// The device's public key for a clearing, 32 bytes.
  public var clearingKey: String
  /// By a key that follows from the master key, over all that and the device's id: 64 bytes.
  public var signature: String

  public init(
    tenant: String, vault: [UInt8], escrowKey: [UInt8], encapsulatedKey: [UInt8], sealedKey: [UInt8],
    clearingKey: [UInt8], signature: [UInt8]
  ) {
    self.tenant = tenant
    self.vault = Base64URL.encode(vault)
    self.escrowKey = Base64URL.encode(escrowKey)
    self.encapsulatedKey = Base64URL.encode(encapsulatedKey)
    self.sealedKey = Base64URL.encode(sealedKey)
    self.clearingKey = Base64URL.encode(clearingKey)
    self.signature = Base64URL.encode(signature)
  }

  /// Whether every part is as long as it must be. What it is worth, the escrow key tells.
  public var isWellFormed: Bool {
    let parts = [
      (vault, 16), (escrowKey, 32), (encapsulatedKey, 32), (sealedKey, 48), (clearingKey, 32), (signature, 64),
    ]
    return PolicyText.isIdentifier(tenant)
      && parts.allSatisfy { text, count in text.utf8.count <= 128 && Base64URL.decode(text)?.count == count }
  }
}
