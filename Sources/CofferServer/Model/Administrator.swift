/// A person who administers a company.
public struct Administrator: Sendable {
  public let id: String
  public let tenant: String
  /// Unique within the company, without regard to ASCII case.
  public let email: String
  public var role: Role
  public var password: PasswordRecord
  /// What one-time codes are made of, sealed under the server key; absent without a second factor.
  public var sealedOneTimeSecret: [UInt8]?
  /// The same, while the person has not shown yet that the authenticator has it.
  public var pendingOneTimeSecret: [UInt8]?
  /// The step of the last one-time code that was accepted: neither it nor an earlier one is again.
  public var lastOneTimeStep: Int64
  /// Seconds since 1970.
  public let createdAt: Int64

  public init(
    id: String, tenant: String, email: String, role: Role, password: PasswordRecord,
    sealedOneTimeSecret: [UInt8]? = nil, pendingOneTimeSecret: [UInt8]? = nil, lastOneTimeStep: Int64 = 0,
    createdAt: Int64
  ) {
    self.id = id
    self.tenant = tenant
    self.email = email
    self.role = role
    self.password = password
    self.sealedOneTimeSecret = sealedOneTimeSecret
    self.pendingOneTimeSecret = pendingOneTimeSecret
    self.lastOneTimeStep = lastOneTimeStep
    self.createdAt = createdAt
  }
}
