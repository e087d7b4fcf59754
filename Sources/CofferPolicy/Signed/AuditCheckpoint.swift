public import CofferCrypto

/// How far a company's audit reached at some time: whoever keeps one can tell later whether what came before was
/// altered. Devices get one with each status, and so are witnesses. Times are seconds since 1970.
public struct AuditCheckpoint: Codable, Hashable, Sendable {
  public var tenant: String
  /// The number of the last entry.
  public var number: Int64
  /// The chained hash of the last entry: SHA-256 in lower-case hexadecimal.
  public var hash: String
  public var time: Int64
  public var keyEpoch: Int64

  public init(tenant: String, number: Int64, hash: String, time: Int64, keyEpoch: Int64) {
    self.tenant = tenant
    self.number = number
    self.hash = hash
    self.time = time
    self.keyEpoch = keyEpoch
  }

  public func validate() throws(PolicyRefusal) {
    guard PolicyText.isIdentifier(tenant), number >= 0, PolicyText.isDigest(hash), time >= 0, keyEpoch > 0 else {
      throw .malformed("audit checkpoint")
    }
  }
}

/// A checkpoint with the signature of one of its company's keys.
public struct SignedCheckpoint: Hashable, Sendable {
  public let checkpoint: AuditCheckpoint
  public let document: SignedDocument

  public init(issuing checkpoint: AuditCheckpoint, key: SigningKey) throws(PolicyRefusal) {
    try checkpoint.validate()
    self.checkpoint = checkpoint
    document = try SignedDocument(signing: StrictJSON.encode(checkpoint), as: .checkpoint, with: key)
  }

  public init(verifying text: String, keyset: Keyset) throws(PolicyRefusal) {
    document = try SignedDocument(verifying: text, as: .checkpoint, key: keyset.key)
    checkpoint = try StrictJSON.decode(AuditCheckpoint.self, from: document.payload, "audit checkpoint")
    try checkpoint.validate()
    guard checkpoint.tenant == keyset.tenant else { throw .otherTenant }
    guard checkpoint.keyEpoch == keyset.epoch else { throw .otherEpoch }
  }
}

/// The part of a status that says how far the company's audit reaches.
public struct AuditMark: Codable, Hashable, Sendable {
  public var number: Int64
  /// SHA-256 in lower-case hexadecimal.
  public var hash: String

  public init(number: Int64, hash: String) {
    self.number = number
    self.hash = hash
  }
}
