public import CofferCrypto

/// "This is the policy at present": a company's answer to one question of one device. Times are seconds since 1970.
public struct Status: Codable, Hashable, Sendable {
  public var tenant: String
  /// The device that asked.
  public var audience: String
  /// What the device sent: 16 to 64 random bytes, base64url.
  public var nonce: String
  public var revision: Int64
  /// ``PolicyBundle/digest`` of the bundle at present.
  public var digest: String
  public var time: Int64
  public var keyEpoch: Int64
  /// How far the company's audit reached, for the device to remember.
  public var audit: AuditMark?
  /// Ids of the groups that the device is in; absent is none.
  public var groups: [String]?

  public init(
    tenant: String, audience: String, nonce: String, revision: Int64, digest: String, time: Int64, keyEpoch: Int64,
    audit: AuditMark? = nil, groups: [String]? = nil
  ) {
    self.tenant = tenant
    self.audience = audience
    self.nonce = nonce
    self.revision = revision
    self.digest = digest
    self.time = time
    self.keyEpoch = keyEpoch
    self.audit = audit
    self.groups = groups
  }

  /// Whether `text` may be a nonce. A server signs no other.
  public static func isNonce(_ text: String) -> Bool {
    (22...86).contains(text.utf8.count) && Base64URL.decode(text) != nil
  }

  public func validate() throws(PolicyRefusal) {
    let isValid =
      PolicyText.isIdentifier(tenant) && PolicyText.isIdentifier(audience) && Self.isNonce(nonce) && revision > 0
      && PolicyText.isDigest(digest) && time >= 0 && keyEpoch > 0
      && audit.map { $0.number > 0 && PolicyText.isDigest($0.hash) } ?? true
      && groups.map { $0.count <= 100 && PolicyText.isSet($0) && $0.allSatisfy(PolicyText.isIdentifier) } ?? true
    guard isValid else { throw .malformed("status") }
  }
}

/// A status with the signature of one of its company's keys.
public struct SignedStatus: Hashable, Sendable {
  public let status: Status
  public let document: SignedDocument

  public init(issuing status: Status, key: SigningKey) throws(PolicyRefusal) {
    try status.validate()
    self.status = status
    document = try SignedDocument(signing: StrictJSON.encode(status), as: .status, with: key)
  }

  public init(verifying text: String, keyset: Keyset) throws(PolicyRefusal) {
    document = try SignedDocument(verifying: text, as: .status, key: keyset.key)
    status = try StrictJSON.decode(Status.self, from: document.payload, "status")
    try status.validate()
    guard status.tenant == keyset.tenant else { throw .otherTenant }
    guard status.keyEpoch == keyset.epoch else { throw .otherEpoch }
  }
}
