/// Leave to become an administrator: of a company, or, at the first start, of one that is made with it. The link's
/// secret is shown once and only its hash is kept.
public struct Invitation: Sendable {
  /// Absent in the set-up link of a server that nobody administers yet.
  public let tenant: String?
  public let id: String
  /// The address that the account gets; absent with ``tenant``.
  public let email: String?
  public let role: Role
  /// Seconds since 1970.
  public let createdAt: Int64
  /// Seconds since 1970; from then on the link is unknown.
  public let expiresAt: Int64
  /// ``Actor``; absent when the store does not say.
  public let createdBy: String?

  public init(
    id: String, tenant: String?, email: String?, role: Role, createdAt: Int64, expiresAt: Int64, createdBy: String?
  ) {
    self.id = id
    self.tenant = tenant
    self.email = email
    self.role = role
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.createdBy = createdBy
  }

  func isValid(at now: Int64) -> Bool { Lifetime.holds(from: createdAt, until: expiresAt, at: now) }
}
