public import CofferCrypto

/// A device that enrolled with a company, known by the key that it made for this.
public struct Device: Sendable {
  public let id: String
  public let tenant: String
  public let key: VerifyingKey
  /// What it says it runs, for people to tell devices apart.
  public let platform: String?
  /// Seconds since 1970.
  public let enrolledAt: Int64

  public init(id: String, tenant: String, key: VerifyingKey, platform: String?, enrolledAt: Int64) {
    self.id = id
    self.tenant = tenant
    self.key = key
    self.platform = platform
    self.enrolledAt = enrolledAt
  }
}
