public import CofferCrypto

/// The keys that a company signs with at present, signed by its root key. Times are seconds since 1970.
///
/// An epoch has one set of keys: a key that is added or withdrawn makes a new epoch. A set that is only renewed keeps
/// its epoch and gets later times.
public struct Keyset: Codable, Hashable, Sendable {
  public struct Entry: Codable, Hashable, Sendable {
    public let kid: String
    public let key: VerifyingKey

    public init(_ key: VerifyingKey) {
      kid = key.keyID
      self.key = key
    }
  }

  public var tenant: String
  public var epoch: Int64
  public var keys: [Entry]
  public var issuedAt: Int64
  public var notAfter: Int64

  public init(tenant: String, epoch: Int64, keys: [VerifyingKey], issuedAt: Int64, notAfter: Int64) {
    self.tenant = tenant
    self.epoch = epoch
    self.keys = keys.map(Entry.init)
    self.issuedAt = issuedAt
    self.notAfter = notAfter
  }

  /// Throws ``PolicyRefusal/malformed(_:)`` unless the keyset is consistent in itself.
  public func validate() throws(PolicyRefusal) {
    let isValid =
      PolicyText.isIdentifier(tenant) && epoch > 0 && issuedAt >= 0 && notAfter > issuedAt
      && (1...16).contains(keys.count) && PolicyText.isSet(keys) && keys.allSatisfy { $0.kid == $0.key.keyID }
    guard isValid else { throw .malformed("set of keys") }
  }

  public func key(_ keyID: String) -> VerifyingKey? { keys.first { $0.kid == keyID }?.key }
}

/// A keyset with the signature of a root key.
public struct SignedKeyset: Hashable, Sendable {
  public let keyset: Keyset
  public let document: SignedDocument

  public init(issuing keyset: Keyset, root: SigningKey) throws(PolicyRefusal) {
    try keyset.validate()
    self.keyset = keyset
    document = try SignedDocument(signing: StrictJSON.encode(keyset), as: .keyset, with: root)
  }

  /// Verifies that `root` signed the keyset. Whose it is and whether it still holds, the enrolment says.
  public init(verifying text: String, root: VerifyingKey) throws(PolicyRefusal) {
    document = try SignedDocument(verifying: text, as: .keyset) { $0 == root.keyID ? root : nil }
    keyset = try StrictJSON.decode(Keyset.self, from: document.payload, "set of keys")
    try keyset.validate()
  }
}
