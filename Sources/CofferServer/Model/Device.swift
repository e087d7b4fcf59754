public import CofferCrypto

/// A device that enrolled with a company, known by the key that it made for this.
public struct Device: Sendable {
  public let id: String
  public let tenant: String
  public let key: VerifyingKey
  /// Seconds since 1970.
  public let enrolledAt: Int64

  public init(id: String, tenant: String, key: VerifyingKey, enrolledAt: Int64) {
    self.id = id
    self.tenant = tenant
    self.key = key
    self.enrolledAt = enrolledAt
  }
}
