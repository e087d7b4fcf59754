/// A program's access to a company's administration. The token's text is shown once and only its hash is kept.
public struct APIToken: Sendable {
  public let id: String
  public let tenant: String
  public let role: Role
  /// For people to tell tokens apart.
  public let name: String
  /// What the token is limited to; nil is all that its role may do.
  public let scopes: Set<Permission>?
  /// Seconds since 1970.
  public let createdAt: Int64
  /// Seconds since 1970; from then on the token is unknown.
  public let expiresAt: Int64
  /// ``Actor``; absent when the store does not say.
  public let createdBy: String?

  public init(
    id: String, tenant: String, role: Role, name: String = "", scopes: Set<Permission>? = nil, createdAt: Int64,
    expiresAt: Int64, createdBy: String?
  ) {
    self.id = id
    self.tenant = tenant
    self.role = role
    self.name = name
    self.scopes = scopes
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.createdBy = createdBy
  }

  func isValid(at now: Int64) -> Bool { Lifetime.holds(from: createdAt, until: expiresAt, at: now) }

  /// A scope that the role does not have gives nothing.
  public var permissions: Set<Permission> { scopes.map(role.permissions.intersection) ?? role.permissions }
}
