/// Leave for one device to join a company. The code's secret part is shown once and only its hash is kept.
public struct Enrollment: Sendable {
  public let id: String
  public let tenant: String
  /// Seconds since 1970.
  public let createdAt: Int64
  /// Seconds since 1970; from then on the code is unknown.
  public let expiresAt: Int64
  /// ``Actor``; absent when the store does not say.
  public let createdBy: String?

  public init(id: String, tenant: String, createdAt: Int64, expiresAt: Int64, createdBy: String?) {
    self.id = id
    self.tenant = tenant
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.createdBy = createdBy
  }

  func isValid(at now: Int64) -> Bool { Lifetime.holds(from: createdAt, until: expiresAt, at: now) }
}
