internal import CofferCrypto
internal import CofferSystem
internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// How a person signs in and out, and looks after the own account.
extension PolicyServer {
  private struct SignInBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case company, email, password, code }
    /// The company's name.
    let company: String
    let email: String
    let password: String
    let code: String?
  }

  struct SessionView: Encodable {
    let administrator: String
    let tenant: String
    let email: String
    let role: Role
    let permissions: [String]
    let hasSecondFactor: Bool
    /// To be sent as X-CSRF-Token with every change.
    let csrfToken: String
    let expiresAt: Int64

    init(_ person: Administrator, _ session: Session, csrfToken: String) {
      administrator = person.id
      tenant = person.tenant
      email = person.email
      role = person.role
      permissions = person.role.permissions.map(\.rawValue).sorted()
      hasSecondFactor = person.sealedOneTimeSecret != nil
      self.csrfToken = csrfToken
      expiresAt = session.expiresAt
    }
  }

  private static let signInRefused = HTTPProblem(
    .signInRefused, "Company, address, password or code is not right. The code is that of the authenticator, if any.")

  /// One answer for everything that may be wrong, after the same work.
  @Sendable func signIn(_ call: Call) async throws -> Response {
    let body = try call.strict(SignInBody.self)
    let (secret, session, person) = try await signIn(
      company: body.company, email: body.email, password: Self.secret(body.password), code: body.code,
      address: call.address)
    let view = SessionView(person, session, csrfToken: SessionCookie.csrfToken(of: secret.text))
    return .json(view, status: .created, headers: [.setCookie: site.cookie.setting(secret)])
  }

  /// Throws a problem with status 401, or 429 after too many attempts.
  func signIn(
    company: String, email: String, password: SecretBytes, code: String?, address: String
  ) async throws -> (BearerToken, Session, Administrator) {
    let (tenant, known) = try await store.read { transaction -> (String?, Administrator?) in
      guard let tenant = try transaction.tenant(name: company)?.id else { return (nil, nil) }
      return (tenant, try transaction.administrator(tenant: tenant, email: email))
    }
    let target = tenant.map { RefusedSignIns.Key(tenant: $0, account: known?.id) }
    // Counted by what the store found, so that no other spelling of an account has tries of its own. One that is not
    // there is counted by its text as the store would compare it.
    let account = known?.id ?? "\(company)\0\(Self.foldingASCII(email))"
    if let wait = limiter.begin(account: account, address: address, now: uptime) {
      note(target, isLimited: true)
      throw HTTPProblem.tooMany(retryAfter: wait)
    }
    guard
      try await passwords.matches(
        password, known?.password, for: FairLine.Party(account: account, address: address)), let known
    else { throw refusedSignIn(target) }
    // Before the store is asked to write: how long that takes would tell that the password was right.
    var seen = known
    guard try acceptsCode(code ?? "", for: &seen, now: time.now().seconds) else { throw refusedSignIn(target) }
    let (secret, id) = (BearerToken(.session), UUID().uuidString.lowercased())
    let signedIn = try await commit(.administrator(known.id), in: known.tenant) { change in
      // As it is now: the password or the second factor may have changed while the derivation ran.
      guard var person = try change.transaction.administrator(tenant: known.tenant, id: known.id),
        person.password.commitment == known.password.commitment,
        try acceptsCode(code ?? "", for: &person, now: change.now)
      else { return Optional<(Session, Administrator)>.none }
      let session = Session(
        id: id, tenant: person.tenant, administrator: person.id, createdAt: change.now, lastSeenAt: change.now)
      try change.transaction.update(person)
      try change.transaction.insert(session, hash: secret.hash, now: change.now)
      try change.record(.signedIn, person.id)
      return (session, person)
    }
    guard let (session, person) = signedIn else { throw refusedSignIn(target) }
    limiter.succeeded(account: account, address: address)
    return (secret, session, person)
  }

  private static func foldingASCII(_ text: String) -> String {
    String(decoding: text.utf8.map { (65...90).contains($0) ? $0 + 32 : $0 }, as: UTF8.self)
  }

  private func refusedSignIn(_ target: RefusedSignIns.Key?) -> HTTPProblem {
    note(target, isLimited: false)
    return Self.signInRefused
  }

  /// Counts what was refused: for the operator, and for the company's audit, where there is such a company. Nothing is
  /// written here, so that an account that is there takes as long as one that is not.
  private func note(_ target: RefusedSignIns.Key?, isLimited: Bool) {
    metrics.count(isLimited ? .signInsLimited : .signInsRefused)
    if let target { refusedSignIns.note(target, isLimited: isLimited, now: time.now().seconds) }
  }

  /// Whether a second factor is not asked for or `code` is a fresh one of it, whose step is then noted in `person`.
  private func acceptsCode(_ code: String, for person: inout Administrator, now: Int64) throws -> Bool {
    guard let sealed = person.sealedOneTimeSecret else { return true }
    guard
      let step = try oneTimeCode(sealed, of: person).acceptedStep(code, at: now, after: person.lastOneTimeStep)
    else { return false }
    person.lastOneTimeStep = step
    return true
  }

  private func oneTimeCode(_ sealed: [UInt8], of person: Administrator) throws -> OneTimeCode {
    var bytes = try sealing.open(sealed, tenant: person.tenant, use: .oneTimeCode, id: person.id)
    defer { bytes.withUnsafeMutableBytes { overwrite($0) } }
    return try OneTimeCode(secret: bytes.withUnsafeBytes { SecretBytes(copying: $0) })
  }

  @Sendable func showSession(_ call: Call, _ signedIn: SignedIn) async throws -> Response {
    .json(SessionView(signedIn.administrator, signedIn.session, csrfToken: signedIn.csrfToken))
  }

  @Sendable func signOut(_ call: Call, _ signedIn: SignedIn) async throws -> Response {
    let person = signedIn.administrator
    try await commit(Caller(signedIn)) { change in
      try change.transaction.deleteSession(id: signedIn.session.id)
      try change.record(.signedOut, person.id)
    }
    return .plain(.noContent, headers: [.setCookie: site.cookie.clearing])
  }

  private struct PasswordBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case current, new }
    let current: String
    let new: String
  }

  /// Ends all of the person's sessions, this one too: whoever has one of them knows the old password, perhaps.
  @Sendable func changePassword(_ call: Call, _ signedIn: SignedIn) async throws -> Response {
    let body = try call.strict(PasswordBody.self)
    try await demandPassword(body.current, of: signedIn, address: call.address)
    let record = try await passwords.record(
      of: Administration.password(body.new), for: Self.party(signedIn, call.address))
    try await changeAccount(signedIn) { person, change in
      person.password = record
      try change.transaction.deleteSessions(administrator: person.id)
      try change.record(.passwordChanged, person.id)
    }
    return .plain(.noContent, headers: [.setCookie: site.cookie.clearing])
  }

  private struct ConfirmedBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case password }
    let password: String
  }

  private struct SecondFactorView: Encodable {
    /// base32, for authenticators.
    let secret: String
    let uri: String
  }

  /// Makes a second factor that counts once the person has shown that the authenticator has it.
  @Sendable func prepareSecondFactor(_ call: Call, _ signedIn: SignedIn) async throws -> Response {
    try await demandPassword(try call.strict(ConfirmedBody.self).password, of: signedIn, address: call.address)
    let secret = Randomness.bytes(OneTimeCode.secretByteCount)
    try await changeAccount(signedIn) { person, _ in
      person.pendingOneTimeSecret = try sealing.seal(secret, tenant: person.tenant, use: .oneTimeCode, id: person.id)
    }
    let text = AuthenticatorText(secret: secret, account: signedIn.administrator.email)
    return .json(SecondFactorView(secret: text.secret, uri: text.uri))
  }

  private struct CodeBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case code }
    let code: String
  }

  @Sendable func confirmSecondFactor(_ call: Call, _ signedIn: SignedIn) async throws -> Response {
    let code = try call.strict(CodeBody.self).code
    try limit(signedIn, address: call.address)
    try await changeAccount(signedIn) { person, change in
      guard let pending = person.pendingOneTimeSecret,
        let step = try oneTimeCode(pending, of: person).acceptedStep(code, at: change.now, after: 0)
      else { throw Self.signInRefused }
      person.sealedOneTimeSecret = pending
      person.pendingOneTimeSecret = nil
      person.lastOneTimeStep = step
      try change.record(.secondFactorAdded, person.id)
    }
    return .plain(.noContent)
  }

  @Sendable func removeSecondFactor(_ call: Call, _ signedIn: SignedIn) async throws -> Response {
    try await demandPassword(try call.strict(ConfirmedBody.self).password, of: signedIn, address: call.address)
    try await changeAccount(signedIn) { person, change in
      person.sealedOneTimeSecret = nil
      person.pendingOneTimeSecret = nil
      try change.record(.secondFactorRemoved, person.id)
    }
    return .plain(.noContent)
  }

  /// The password again, for what a session alone is too little for. Counted like a sign-in.
  func demandPassword(_ password: String, of signedIn: SignedIn, address: String) async throws {
    try limit(signedIn, address: address)
    guard
      try await passwords.matches(
        Self.secret(password), signedIn.administrator.password, for: Self.party(signedIn, address))
    else {
      throw refusedSignIn(Self.target(signedIn))
    }
    limiter.succeeded(account: signedIn.administrator.id, address: address)
  }

  static func party(_ signedIn: SignedIn, _ address: String) -> FairLine.Party {
    FairLine.Party(account: signedIn.administrator.id, address: address)
  }

  private func limit(_ signedIn: SignedIn, address: String) throws {
    if let wait = limiter.begin(account: signedIn.administrator.id, address: address, now: uptime) {
      note(Self.target(signedIn), isLimited: true)
      throw HTTPProblem.tooMany(retryAfter: wait)
    }
  }

  private static func target(_ signedIn: SignedIn) -> RefusedSignIns.Key {
    RefusedSignIns.Key(tenant: signedIn.administrator.tenant, account: signedIn.administrator.id)
  }

  /// Seconds since the system's start.
  var uptime: Int64 { Int64(clamping: time.sinceBoot().seconds) }

  private func changeAccount(
    _ signedIn: SignedIn, _ body: @Sendable (inout Administrator, Change) throws -> Void
  ) async throws {
    let known = signedIn.administrator
    try await commit(Caller(signedIn)) { change in
      guard var person = try change.transaction.administrator(tenant: known.tenant, id: known.id),
        person.password.commitment == known.password.commitment
      else { throw HTTPProblem.unauthorized(tokenGiven: true) }
      try body(&person, change)
      try change.transaction.update(person)
    }
  }

  static func secret(_ text: String) -> SecretBytes {
    var bytes = Array(text.utf8)
    defer { bytes.withUnsafeMutableBytes { overwrite($0) } }
    return bytes.withUnsafeBytes { SecretBytes(copying: $0) }
  }
}
