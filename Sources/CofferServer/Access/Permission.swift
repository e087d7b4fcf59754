/// One thing that somebody of a company's administration may do. Tokens carry them as scopes.
public enum Permission: String, CaseIterable, Codable, Hashable, Sendable {
  case readPolicy = "policy:read"
  case changePolicy = "policy:write"
  case readDevices = "devices:read"
  /// Enrolment codes, groups, commands, removing a device.
  case manageDevices = "devices:write"
  case readAudit = "audit:read"
  /// Administrators, invitations and tokens, without any secret of theirs.
  case readAccounts = "accounts:read"
  case manageAccounts = "accounts:write"
  /// The root key, the keyset and delegated keys.
  case manageKeys = "keys:write"
}

extension Role {
  /// What a role may do. Everything else is refused.
  public var permissions: Set<Permission> {
    switch self {
    case .owner: Set(Permission.allCases)
    case .editor: [.readPolicy, .changePolicy, .readDevices, .manageDevices, .readAudit]
    case .auditor: [.readPolicy, .readDevices, .readAudit, .readAccounts]
    }
  }
}
