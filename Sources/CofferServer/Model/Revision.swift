/// One signed state of a company's policy. Every one is kept: together they say what was in force when.
public struct Revision: Sendable {
  public let tenant: String
  /// Counts up from 1 without gaps.
  public let number: Int64
  /// The bundle as a compact JWS.
  public let bundle: String
  /// Lower-case hexadecimal SHA-256 of ``bundle``'s bytes; the next bundle names it.
  public let digest: String
  /// The epoch of the key that signed it.
  public let keyEpoch: Int64
  /// Seconds since 1970.
  public let issuedAt: Int64
  /// Seconds since 1970.
  public let notAfter: Int64

  public init(
    tenant: String, number: Int64, bundle: String, digest: String, keyEpoch: Int64, issuedAt: Int64, notAfter: Int64
  ) {
    self.tenant = tenant
    self.number = number
    self.bundle = bundle
    self.digest = digest
    self.keyEpoch = keyEpoch
    self.issuedAt = issuedAt
    self.notAfter = notAfter
  }

  var head: RevisionHead {
    RevisionHead(number: number, digest: digest, keyEpoch: keyEpoch, issuedAt: issuedAt, notAfter: notAfter)
  }
}

/// A ``Revision`` without what it says.
public struct RevisionHead: Sendable {
  public let number: Int64
  public let digest: String
  public let keyEpoch: Int64
  /// Seconds since 1970.
  public let issuedAt: Int64
  /// Seconds since 1970.
  public let notAfter: Int64

  public init(number: Int64, digest: String, keyEpoch: Int64, issuedAt: Int64, notAfter: Int64) {
    self.number = number
    self.digest = digest
    self.keyEpoch = keyEpoch
    self.issuedAt = issuedAt
    self.notAfter = notAfter
  }
}
