public import CofferCrypto

/// Leave that a company's root key gives another key, for one use that policy's own keys are not good for. Times are
/// seconds since 1970.
public struct Delegation: Codable, Hashable, Sendable {
  public enum Use: String, Codable, CaseIterable, Hashable, Sendable {
    /// Signs orders to wipe.
    case wipe
    /// Has vaults sealed to it (X25519), so that the company can open one.
    case escrow
  }

  public var tenant: String
  public var use: Use
  /// base64url of the public key: Ed25519 for ``Use/wipe``, X25519 for ``Use/escrow``.
  public var key: String
  public var issuedAt: Int64
  public var notAfter: Int64

  public init(tenant: String, use: Use, key: String, issuedAt: Int64, notAfter: Int64) {
    self.tenant = tenant
    self.use = use
    self.key = key
    self.issuedAt = issuedAt
    self.notAfter = notAfter
  }

  public func validate() throws(PolicyRefusal) {
    guard PolicyText.isIdentifier(tenant), issuedAt >= 0, notAfter > issuedAt, Base64URL.decode(key)?.count == 32,
      use != .wipe || VerifyingKey(text: key) != nil
    else { throw .malformed("delegation") }
  }
}

/// A delegation with the signature of a root key.
public struct SignedDelegation: Hashable, Sendable {
  public let delegation: Delegation
  public let document: SignedDocument

  public init(issuing delegation: Delegation, root: SigningKey) throws(PolicyRefusal) {
    try delegation.validate()
    self.delegation = delegation
    document = try SignedDocument(signing: StrictJSON.encode(delegation), as: .delegation, with: root)
  }

  /// Verifies that `root` signed it for `tenant`. Whether it still holds, `notAfter` says.
  public init(verifying text: String, root: VerifyingKey, tenant: String) throws(PolicyRefusal) {
    document = try SignedDocument(verifying: text, as: .delegation) { $0 == root.keyID ? root : nil }
    delegation = try StrictJSON.decode(Delegation.self, from: document.payload, "delegation")
    try delegation.validate()
    guard delegation.tenant == tenant else { throw .otherTenant }
  }
}
