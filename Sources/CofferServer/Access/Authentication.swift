internal import CofferCrypto
internal import CofferSystem
internal import HTTPTypes
internal import Hummingbird

/// Establishes who calls: by bearer token (RFC 6750), or by the cookie of a session.
struct Authentication: Sendable {
  let store: any PolicyStore
  let reads: ReadCache
  let time: any TimeSource
  let site: Site

  /// Somebody of a company's administration who may do `permission`. Throws a problem with status 401 without a token or
  /// session that is known and not over, and with 403 when it does not reach so far.
  func caller(of request: Request, permission: Permission) async throws -> Caller {
    let caller: Caller
    if request.headers.contains(.authorization) {
      caller = Caller(try await token(of: request))
    } else {
      caller = Caller(try await person(of: request))
    }
    guard caller.permissions.contains(permission) else { throw HTTPProblem.forbidden(permission) }
    return caller
  }

  /// A person who signed in; a change must come from a page of this origin. A token is no person.
  func person(of request: Request) async throws -> SignedIn {
    let person = try await session(of: request, isUse: false)
    if !isReading(request) {
      try demandOwnPage(request)
      try demandToken(request.headers[values: .csrfToken], of: person)
    }
    try await noteUse(of: person.session)
    return person
  }

  /// Whose session the cookie is. That alone is leave to read, and to change nothing.
  ///
  /// - Parameter isUse: whether it keeps the session from being idle.
  func session(of request: Request, isUse: Bool) async throws -> SignedIn {
    guard !request.headers.contains(.authorization), let secret = site.cookie.secret(in: request.headers) else {
      throw HTTPProblem.unauthorized(tokenGiven: request.headers.contains(.authorization))
    }
    let (hash, now) = (BearerToken.hash(of: secret), time.now().seconds)
    guard let (session, administrator) = try await store.read({ try $0.session(hash: hash) }), session.isValid(at: now)
    else { throw HTTPProblem.unauthorized(tokenGiven: true) }
    if isUse { try await noteUse(of: session) }
    return SignedIn(
      administrator: administrator, session: session, csrfToken: SessionCookie.csrfToken(of: secret))
  }

  private func noteUse(of session: Session) async throws {
    let now = time.now().seconds
    guard now - session.lastSeenAt >= Session.notedEvery else { return }
    try await store.write { try $0.noteSession(id: session.id, seenAt: now) }
  }

  /// For what anyone may ask: a browser must not be made to change something by another site's page. Reading, it may
  /// come from anywhere: people follow links.
  func demandNotElsewhere(_ request: Request) throws {
    if isReading(request) { return }
    if site.provenance(of: request) == .elsewhere { throw HTTPProblem.crossSite }
  }

  private func isReading(_ request: Request) -> Bool { request.method == .get || request.method == .head }

  /// For what a browser asks for somebody: the browser itself says that a page of this origin asks.
  func demandOwnPage(_ request: Request) throws {
    guard site.provenance(of: request) == .ownPage else { throw HTTPProblem.crossSite }
  }

  /// The token of the session, which only pages of the session have.
  func demandToken(_ given: [String], of person: SignedIn) throws {
    guard given.count == 1, equalInConstantTime(Array(given[0].utf8), Array(person.csrfToken.utf8)) else {
      throw HTTPProblem.crossSite
    }
  }

  /// The device whose token `request` carries.
  func device(of request: Request) async throws -> Device {
    try await device(tokenHash: try deviceTokenHash(of: request))
  }

  func deviceTokenHash(of request: Request) throws -> [UInt8] { try bearer(.device, of: request) }

  /// The device whose token has this hash.
  func device(tokenHash hash: [UInt8]) async throws -> Device { try await deviceToken(hash).device }

  /// The same with the token's end.
  func deviceToken(_ hash: [UInt8]) async throws -> (device: Device, expiresAt: Int64) {
    let known = try await reads.value(.deviceToken(hash)) { try $0.device(tokenHash: hash) }
    guard let known,
      Lifetime.holds(
        from: known.expiresAt - PolicyServer.deviceTokenLifetime, until: known.expiresAt, at: time.now().seconds)
    else { throw HTTPProblem.unauthorized(tokenGiven: true) }
    return known
  }

  private func token(of request: Request) async throws -> APIToken {
    let hash = try bearer(.api, of: request)
    let token = try await reads.value(.apiToken(hash)) { try $0.apiToken(hash: hash) }
    guard let token, token.isValid(at: time.now().seconds) else { throw HTTPProblem.unauthorized(tokenGiven: true) }
    return token
  }

  /// The hash of the token. Only its own kind is looked up: one kind never passes for the other.
  private func bearer(_ kind: BearerToken.Kind, of request: Request) throws -> [UInt8] {
    let headers = request.headers[values: .authorization]
    guard !headers.isEmpty else { throw HTTPProblem.unauthorized(tokenGiven: false) }
    let parts = headers[0].split(separator: " ", maxSplits: 1)
    guard headers.count == 1, parts.count == 2, parts[0].lowercased() == "bearer", parts[1].hasPrefix(kind.rawValue)
    else { throw HTTPProblem.unauthorized(tokenGiven: true) }
    return BearerToken.hash(of: String(parts[1]))
  }
}
