/// A program's access to a company's administration. The token's text is shown once and only its hash is kept.
public struct APIToken: Sendable {
  public let id: String
  public let tenant: String
  public let role: Role
  /// Seconds since 1970.
  public let createdAt: Int64
  /// Seconds since 1970; from then on the token is unknown.
  public let expiresAt: Int64

  public init(id: String, tenant: String, role: Role, createdAt: Int64, expiresAt: Int64) {
    self.id = id
    self.tenant = tenant
    self.role = role
    self.createdAt = createdAt
    self.expiresAt = expiresAt
  }
}
