public import CofferAPI
public import CofferCrypto
internal import CofferPolicy
public import CofferSystem
internal import Foundation

/// What the server's operator does to the store itself: companies, their administrators, tokens and enrolment codes.
public struct Administration: Sendable {
  private let store: any PolicyStore
  private let publisher: Publisher
  private let time: any TimeSource

  public init(store: any PolicyStore, serverKey: SecretKey, time: any TimeSource = SystemTime()) {
    self.store = store
    self.time = time
    publisher = Publisher(sealing: KeySealing(serverKey: serverKey), time: time)
  }

  /// Makes a company with its keys, its keyset and the first revision of its policy.
  ///
  /// Throws `ServerError.tenantExists`, `.invalid` for a name that is no name, and `StoreError`.
  public func createTenant(name: String) async throws -> Tenant {
    let tenant = try newTenant(name)
    try await store.write { try found(tenant, by: .operator, in: $0) }
    return tenant
  }

  /// Adds an administrator. `tenant` is a name or an id.
  ///
  /// Throws `ServerError.noSuchTenant`, `.administratorExists`, `.invalid`, and `StoreError`.
  public func createAdministrator(
    tenant: String, email: String, role: Role = .owner, password: SecretBytes,
    costExponent: Int = PasswordRecord.costExponent
  ) async throws -> Administrator {
    guard Self.isAddress(email) else { throw ServerError.invalid("this is not an e-mail address") }
    try Self.demandLength(of: password)
    let record = try PasswordRecord(password, costExponent: costExponent)
    return try await store.write { transaction in
      let tenant = try Self.find(tenant, in: transaction).id
      return try add(email: email, role: role, password: record, to: tenant, by: .operator, in: transaction)
    }
  }

  /// Makes an API token that expires after `lifetime` seconds. The token's text cannot be had again.
  ///
  /// Throws `ServerError.noSuchTenant`, `.invalid`, and `StoreError`.
  public func createToken(
    tenant: String, role: Role, name: String = "", scopes: Set<Permission>? = nil, lifetime: Int64 = 90 * 86_400
  ) async throws -> (secret: BearerToken, token: APIToken) {
    guard Self.tokenLifetimes.contains(lifetime) else {
      throw ServerError.invalid("a token lives from one minute to 366 days")
    }
    guard name.isEmpty || Self.isName(name) else { throw ServerError.invalid("the token's name is no name") }
    let (id, secret, now) = (Self.newID(), BearerToken(.api), now)
    let token = try await store.write { transaction in
      let token = APIToken(
        id: id, tenant: try Self.find(tenant, in: transaction).id, role: role, name: name, scopes: scopes,
        createdAt: now, expiresAt: now + lifetime, createdBy: Actor.operator.description)
      try transaction.insert(token, hash: secret.hash)
      try record(.tokenCreated, by: .operator, token.tenant, id, ["role": role.rawValue], in: transaction)
      return token
    }
    return (secret, token)
  }

  /// Makes a code by which one device can join within `lifetime` seconds. It cannot be had again.
  ///
  /// Throws `ServerError.noSuchTenant`, `.invalid`, and `StoreError`.
  public func createEnrollment(
    tenant: String, lifetime: Int64 = 86_400
  ) async throws -> (code: EnrollmentCode, enrollment: Enrollment) {
    guard Self.enrollmentLifetimes.contains(lifetime) else {
      throw ServerError.invalid("an enrolment code lives from one minute to 30 days")
    }
    return try await store.write { transaction in
      let tenant = try Self.find(tenant, in: transaction)
      return try createEnrollment(for: tenant, lifetime: lifetime, by: .operator, in: transaction)
    }
  }

  func createEnrollment(
    for tenant: Tenant, lifetime: Int64, by actor: Actor, in transaction: any StoreTransaction
  ) throws -> (code: EnrollmentCode, enrollment: Enrollment) {
    let now = now
    let enrollment = Enrollment(
      id: Self.newID(), tenant: tenant.id, createdAt: now, expiresAt: now + lifetime, createdBy: actor.description)
    let code = EnrollmentCode(
      secret: Randomness.bytes(EnrollmentCode.secretByteCount), fingerprint: tenant.keys.root.fingerprint)
    try transaction.insert(enrollment, hash: Digest.sha256(code.secret.utf8))
    try record(.enrollmentCreated, by: actor, tenant.id, enrollment.id, in: transaction)
    return (code, enrollment)
  }

  /// Makes the link by which the first administrator founds a company, in place of any that was made before. Nil when
  /// somebody administers this server already: then there is nobody to let in without a name.
  public func createSetUpLink() async throws -> String? {
    let (id, secret, now) = (Self.newID(), BearerToken(.invitation), now)
    let isMade = try await store.write { transaction in
      guard try !transaction.hasAdministrators() else { return false }
      try transaction.deleteSetUpLinks()
      let invitation = Invitation(
        id: id, tenant: nil, email: nil, role: .owner, createdAt: now, expiresAt: now + Self.setUpLifetime,
        createdBy: Actor.operator.description)
      try transaction.insert(invitation, hash: secret.hash, now: now)
      return true
    }
    return isMade ? PolicyServer.link(secret) : nil
  }

  /// Uses the link with this hash once: makes the account, and its company when the link founds one. Nil when the link
  /// is unknown, expired or used.
  func accept(
    hash: [UInt8], company: String?, email: String?, password: PasswordRecord
  ) async throws -> (Administrator, Tenant)? {
    if let email, !Self.isAddress(email) { throw HTTPProblem.invalid("email", "is not an e-mail address") }
    let founded = try company.map(newTenant)
    return try await store.write { transaction in
      guard let invitation = try transaction.invitation(hash: hash), invitation.isValid(at: now),
        try transaction.deleteInvitation(tenant: invitation.tenant, id: invitation.id)
      else { return nil }
      let tenant: Tenant
      if let id = invitation.tenant {
        guard let known = try transaction.tenant(id: id), try isStillGiven(invitation, by: id, in: transaction) else {
          return nil
        }
        tenant = known
      } else {
        guard let founded, try !transaction.hasAdministrators() else { return nil }
        try found(founded, by: .server, in: transaction)
        tenant = founded
      }
      guard let address = invitation.email ?? email else { return nil }
      let person = try add(
        email: address, role: invitation.role, password: password, to: tenant.id, by: .server, in: transaction)
      return (person, tenant)
    }
  }

  /// Whether who made the invitation may still give its role.
  private func isStillGiven(
    _ invitation: Invitation, by tenant: String, in transaction: any StoreTransaction
  ) throws -> Bool {
    guard let maker = invitation.createdBy.flatMap(Actor.init) else { return false }
    let permissions: Set<Permission>? =
      switch maker {
      case .administrator(let id): try transaction.administrator(tenant: tenant, id: id)?.role.permissions
      case .token(let id): try transaction.apiToken(tenant: tenant, id: id)?.permissions
      case .operator: Role.owner.permissions
      case .device, .server: nil
      }
    return permissions?.isSuperset(of: invitation.role.permissions) ?? false
  }

  static let tokenLifetimes: ClosedRange<Int64> = 60...366 * 86_400
  static let enrollmentLifetimes: ClosedRange<Int64> = 60...30 * 86_400
  static let setUpLifetime: Int64 = 86_400

  private var now: Int64 { time.now().seconds }

  private func newTenant(_ name: String) throws -> Tenant {
    guard Self.isName(name), name.first != " ", name.last != " " else {
      throw ServerError.invalid("a tenant's name has 1 to 200 bytes and no control characters")
    }
    let id = Self.newID()
    return Tenant(
      id: id, name: name, keys: try publisher.newKeys(tenant: id), settings: .initial, createdAt: now)
  }

  private func found(_ tenant: Tenant, by actor: Actor, in transaction: any StoreTransaction) throws {
    guard try transaction.insert(tenant) else { throw ServerError.tenantExists }
    try record(.tenantCreated, by: actor, tenant.id, tenant.id, in: transaction)
    _ = try publisher.publish(tenant, by: actor, in: transaction)
  }

  private func add(
    email: String, role: Role, password: PasswordRecord, to tenant: String, by actor: Actor,
    in transaction: any StoreTransaction
  ) throws -> Administrator {
    let person = Administrator(
      id: Self.newID(), tenant: tenant, email: email, role: role, password: password, createdAt: now)
    guard try transaction.insert(person) else { throw ServerError.administratorExists }
    try record(.administratorCreated, by: actor, tenant, person.id, ["role": role.rawValue], in: transaction)
    return person
  }

  private func record(
    _ action: AuditAction, by actor: Actor, _ tenant: String, _ subject: String, _ details: [String: String] = [:],
    in transaction: any StoreTransaction
  ) throws {
    try Ledger(tenant: tenant, time: now, transaction: transaction)
      .append(action, by: actor, subject: subject, details: details)
  }

  private static func newID() -> String { UUID().uuidString.lowercased() }

  private static func find(_ tenant: String, in transaction: any StoreTransaction) throws -> Tenant {
    guard let found = try transaction.tenant(id: tenant) ?? transaction.tenant(name: tenant) else {
      throw ServerError.noSuchTenant
    }
    return found
  }
}
