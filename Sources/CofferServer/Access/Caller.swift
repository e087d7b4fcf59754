/// Somebody of a company's administration, proved by a token or a session.
struct Caller: Sendable {
  let tenant: String
  let role: Role
  let permissions: Set<Permission>
  let actor: Actor

  init(_ token: APIToken) {
    tenant = token.tenant
    role = token.role
    permissions = token.permissions
    actor = .token(token.id)
  }

  init(_ person: Administrator) {
    tenant = person.tenant
    role = person.role
    permissions = person.role.permissions
    actor = .administrator(person.id)
  }
}

/// A person who signed in, with the session that proves it.
struct SignedIn: Sendable {
  let administrator: Administrator
  let session: Session
  let csrfToken: String
}

/// Who did something, as the audit names them.
public enum Actor: Hashable, Sendable, CustomStringConvertible {
  case administrator(String)
  case token(String)
  case device(String)
  /// Whoever runs `coffer-server` on the machine.
  case `operator`
  /// The server itself, such as when an approval expires.
  case server

  public var description: String {
    switch self {
    case .administrator(let id): "administrator:\(id)"
    case .token(let id): "token:\(id)"
    case .device(let id): "device:\(id)"
    case .operator: "operator"
    case .server: "server"
    }
  }
}
