public import CofferCrypto
public import CofferPolicy

/// A company. Everything else on the server belongs to exactly one.
public struct Tenant: Sendable {
  public let id: String
  /// Unique on the server; only its operator sees it.
  public let name: String
  public var keys: TenantKeys
  public var settings: Settings
  public var grace: Grace
  /// Whether an approval takes two administrators.
  public var needsTwoApprovers: Bool
  /// When the first approval in force ends, in seconds since 1970; the policy is signed anew then.
  public var policyChangesAt: Int64?
  public var delegations: [StoredDelegation]
  /// When the root key was handed out, in seconds since 1970. It is once.
  public var rootExportedAt: Int64?
  /// Seconds since 1970.
  public let createdAt: Int64

  public init(
    id: String, name: String, keys: TenantKeys, settings: Settings, grace: Grace = .initial,
    needsTwoApprovers: Bool = false, policyChangesAt: Int64? = nil, delegations: [StoredDelegation] = [],
    rootExportedAt: Int64? = nil, createdAt: Int64
  ) {
    self.grace = grace
    self.needsTwoApprovers = needsTwoApprovers
    self.policyChangesAt = policyChangesAt
    self.delegations = delegations
    self.rootExportedAt = rootExportedAt
    self.id = id
    self.name = name
    self.keys = keys
    self.settings = settings
    self.createdAt = createdAt
  }
}

extension Tenant {
  /// The delegation of the company's escrow key, as a compact JWS.
  var escrowDelegation: String? {
    delegations.map(\.document).last { document in
      (try? SignedDelegation(verifying: document, root: keys.root, tenant: id))?.delegation.use == .escrow
    }
  }
}

/// A key that the root delegated, with its private half where the server has it.
public struct StoredDelegation: Codable, Hashable, Sendable {
  /// The signed delegation, as a compact JWS.
  public let document: String
  /// Sealed under the server key; absent for a key that the company keeps elsewhere.
  public let sealedKey: [UInt8]?

  public init(document: String, sealedKey: [UInt8]?) {
    self.document = document
    self.sealedKey = sealedKey
  }
}

/// A company's keys as they are stored: public halves, sealed private halves, and the keyset that the root signed.
public struct TenantKeys: Sendable {
  /// What enrolment codes carry the fingerprint of.
  public let root: VerifyingKey
  /// Sealed under the server key.
  public let sealedRoot: [UInt8]
  /// The online key that signs bundles and statuses.
  public let signing: VerifyingKey
  /// Sealed under the server key.
  public let sealedSigning: [UInt8]
  public let epoch: Int64
  /// The keyset of ``epoch`` as a compact JWS.
  public let keyset: String
  /// Seconds since 1970; the keyset is signed anew well before.
  public let keysetNotAfter: Int64

  public init(
    root: VerifyingKey, sealedRoot: [UInt8], signing: VerifyingKey, sealedSigning: [UInt8], epoch: Int64,
    keyset: String, keysetNotAfter: Int64
  ) {
    self.root = root
    self.sealedRoot = sealedRoot
    self.signing = signing
    self.sealedSigning = sealedSigning
    self.epoch = epoch
    self.keyset = keyset
    self.keysetNotAfter = keysetNotAfter
  }
}
