public import CofferCrypto

/// A policy with the signature of one of its company's keys.
public struct PolicyBundle: Hashable, Sendable {
  public let policy: Policy
  public let document: SignedDocument

  /// Signs `policy`. Throws ``PolicyRefusal`` when no device would accept it.
  public init(issuing policy: Policy, key: SigningKey) throws(PolicyRefusal) {
    try policy.validate()
    self.policy = policy
    document = try SignedDocument(signing: StrictJSON.encode(policy), as: .policy, with: key)
  }

  /// Verifies that a key of `keyset` signed the policy, for the keyset's company and in its epoch. Whether the policy
  /// is newer than the one before, and still holds, the enrolment says.
  public init(verifying text: String, keyset: Keyset) throws(PolicyRefusal) {
    document = try SignedDocument(verifying: text, as: .policy, key: keyset.key)
    policy = try StrictJSON.decode(Policy.self, from: document.payload, "policy", schema: Policy.currentSchema)
    try policy.validate()
    guard policy.tenant == keyset.tenant else { throw .otherTenant }
    guard policy.keyEpoch == keyset.epoch else { throw .otherEpoch }
  }

  /// What the next bundle names as the one before it, and what a strong ETag holds.
  public var digest: String { document.digest }
}
