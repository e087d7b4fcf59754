/// Somebody of a company's administration, proved by a token or a session.
struct Caller: Sendable {
  /// Of a person who signed in: the session's id.
  private let session: String?
  let tenant: String
  let role: Role
  let permissions: Set<Permission>
  let actor: Actor

  init(_ token: APIToken) {
    tenant = token.tenant
    role = token.role
    permissions = token.permissions
    actor = .token(token.id)
    session = nil
  }

  init(_ person: Administrator) { self.init(person, session: nil) }

  init(_ signedIn: SignedIn) { self.init(signedIn.administrator, session: signedIn.session.id) }

  private init(_ person: Administrator, session: String?) {
    tenant = person.tenant
    role = person.role
    permissions = person.role.permissions
    actor = .administrator(person.id)
    self.session = session
  }

  /// Throws a problem with status 401 unless token, session and administrator are there in `transaction` as they were
  /// when the caller was established: what was withdrawn since then changes nothing any more.
  func demandPresent(in transaction: any StoreTransaction, now: Int64) throws {
    let isPresent: Bool
    switch actor {
    case .token(let id):
      isPresent = try transaction.apiToken(tenant: tenant, id: id).map { $0.isValid(at: now) } ?? false
    case .administrator(let id):
      let isSignedIn = try session.map { try transaction.session(id: $0)?.isValid(at: now) ?? false } ?? true
      isPresent = try isSignedIn && transaction.administrator(tenant: tenant, id: id)?.role == role
    case .device, .operator, .server: isPresent = false
    }
    guard isPresent else { throw HTTPProblem.unauthorized(tokenGiven: true) }
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

  /// From ``description``; nil for any other text.
  public init?(_ text: String) {
    let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
    switch (parts.first, parts.count) {
    case ("administrator", 2): self = .administrator(parts[1])
    case ("token", 2): self = .token(parts[1])
    case ("device", 2): self = .device(parts[1])
    case ("operator", 1): self = .operator
    case ("server", 1): self = .server
    default: return nil
    }
  }

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
