/// A person who administers a company.
public struct Administrator: Sendable {
  public let id: String
  public let tenant: String
  /// Unique within the company, without regard to ASCII case.
  public let email: String
  public let role: Role
  public let password: PasswordRecord
  /// Seconds since 1970.
  public let createdAt: Int64

  public init(id: String, tenant: String, email: String, role: Role, password: PasswordRecord, createdAt: Int64) {
    self.id = id
    self.tenant = tenant
    self.email = email
    self.role = role
    self.password = password
    self.createdAt = createdAt
  }
}
