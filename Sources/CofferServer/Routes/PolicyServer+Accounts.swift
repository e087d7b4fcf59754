internal import CofferSystem
internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// Who administers a company. Nobody gives others more than they may do themselves, and a company keeps an owner.
extension PolicyServer {
  struct AdministratorView: Encodable {
    let id: String
    let email: String
    let role: Role
    let hasSecondFactor: Bool
    let createdAt: Int64

    init(_ person: Administrator) {
      id = person.id
      email = person.email
      role = person.role
      hasSecondFactor = person.sealedOneTimeSecret != nil
      createdAt = person.createdAt
    }

    /// Of what can be changed here; a password is not.
    var tag: EntityTag { EntityTag(of: Response.encoded(self)) }
  }

  /// What of an account the audit keeps a digest of. Without the address: a digest of it could be guessed by who may not read
  /// it.
  struct AdministratorState: Encodable {
    let id: String
    let role: Role

    init(_ person: Administrator) { (id, role) = (person.id, person.role) }
  }

  @Sendable func listAdministrators(_ call: Call, _ caller: Caller) async throws -> Response {
    let request = try PageRequest(call, caller, sealing)
    let found = try await store.read {
      try $0.administrators(tenant: caller.tenant, after: request.after, limit: request.limit + 1)
    }
    return .json(try request.page(of: found, AdministratorView.init))
  }

  @Sendable func showAdministrator(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    let person = try found(await store.read { try $0.administrator(tenant: caller.tenant, id: id) })
    let view = AdministratorView(person)
    return .json(view, headers: [.eTag: view.tag.description])
  }

  private struct RoleBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case role }
    let role: Role
  }

  @Sendable func changeAdministrator(_ call: Call, _ caller: Caller) async throws -> Response {
    let (id, role) = (try call.id(), try call.strict(RoleBody.self).role)
    try Self.demandWithin(role.permissions, caller)
    let view = try await commit(caller) { change in
      var person = try found(change.transaction.administrator(tenant: caller.tenant, id: id))
      try call.requireMatch(AdministratorView(person).tag)
      try Self.demandWithin(person.role.permissions, caller)
      let (old, before) = (person.role, AdministratorState(person))
      person.role = role
      try change.transaction.update(person)
      try Self.demandOwner(change)
      try change.record(
        .administratorChanged, id, ["role": role.rawValue, "was": old.rawValue], from: before,
        to: AdministratorState(person))
      try change.withdrawGrants(of: .administrator(id), beyond: role.permissions)
      return AdministratorView(person)
    }
    return .json(view, headers: [.eTag: view.tag.description])
  }

  /// The account goes with its sessions, and with the tokens, links and codes that the person made.
  @Sendable func removeAdministrator(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    try await commit(caller) { change in
      let person = try found(change.transaction.administrator(tenant: caller.tenant, id: id))
      try call.requireMatch(AdministratorView(person).tag)
      try Self.demandWithin(person.role.permissions, caller)
      try change.transaction.deleteAdministrator(tenant: caller.tenant, id: id)
      try Self.demandOwner(change)
      try change.record(
        .administratorRemoved, id, ["role": person.role.rawValue], from: AdministratorState(person))
      try change.withdrawGrants(of: .administrator(id), beyond: [])
    }
    return .plain(.noContent)
  }

  private static func demandOwner(_ change: Change) throws {
    guard try change.transaction.countAdministrators(tenant: change.tenant, role: .owner) > 0 else {
      throw HTTPProblem(.conflict, "The company would have no owner. Make another administrator an owner first.")
    }
  }

  /// No scope, however it was come by, is a way to another.
  static func demandWithin(_ permissions: Set<Permission>, _ caller: Caller) throws {
    guard permissions.isSubset(of: caller.permissions) else {
      throw HTTPProblem(.forbidden, "Nobody can give or take what they do not have themselves.")
    }
  }
}

/// Links by which people become administrators.
extension PolicyServer {
  static let invitationLifetime: Int64 = 3 * 86_400

  private struct InvitationView: Encodable {
    let id: String
    let email: String?
    let role: Role
    let createdAt: Int64
    let expiresAt: Int64
    /// Only in the answer that makes it: the path and fragment of the link.
    var link: String?

    init(_ invitation: Invitation, link: String? = nil) {
      id = invitation.id
      email = invitation.email
      role = invitation.role
      createdAt = invitation.createdAt
      expiresAt = invitation.expiresAt
      self.link = link
    }
  }

  private struct InvitationBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case email, role }
    let email: String
    let role: Role
  }

  @Sendable func createInvitation(_ call: Call, _ caller: Caller) async throws -> Response {
    let body = try call.strict(InvitationBody.self)
    guard Administration.isAddress(body.email) else { throw HTTPProblem.invalid("email", "is not an e-mail address") }
    try Self.demandWithin(body.role.permissions, caller)
    let (id, secret) = (UUID().uuidString.lowercased(), BearerToken(.invitation))
    return try await create(call, caller) { change in
      guard try change.transaction.administrator(tenant: caller.tenant, email: body.email) == nil else {
        throw HTTPProblem(.alreadyExists, "The company has an administrator with this address.")
      }
      let invitation = Invitation(
        id: id, tenant: caller.tenant, email: body.email, role: body.role, createdAt: change.now,
        expiresAt: change.now + Self.invitationLifetime, createdBy: caller.actor.description)
      try change.transaction.insert(invitation, hash: secret.hash, now: change.now)
      try change.record(.invitationCreated, id, ["role": body.role.rawValue])
      return KeptAnswer(InvitationView(invitation, link: Self.link(secret)))
    }
  }

  /// The secret stands behind the `#`, so that it is in no log of a server or proxy.
  static func link(_ secret: BearerToken) -> String { "/setup#\(secret.text)" }

  @Sendable func listInvitations(_ call: Call, _ caller: Caller) async throws -> Response {
    let request = try PageRequest(call, caller, sealing)
    let now = time.now().seconds
    let found = try await store.read {
      try $0.invitations(tenant: caller.tenant, now: now, after: request.after, limit: request.limit + 1)
    }
    return .json(try request.page(of: found) { InvitationView($0) })
  }

  @Sendable func revokeInvitation(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    try await commit(caller) { change in
      let invitation = try found(change.transaction.invitation(tenant: caller.tenant, id: id))
      try Self.demandWithin(invitation.role.permissions, caller)
      _ = try change.transaction.deleteInvitation(tenant: caller.tenant, id: id)
      try change.record(.invitationRevoked, id)
    }
    return .plain(.noContent)
  }

  private struct SetUpBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case token, password, company, email }
    /// The secret of the link.
    let token: String
    let password: String
    /// The company's name and the address, of a link that founds one; absent otherwise.
    let company: String?
    let email: String?
  }

  private struct SetUpView: Encodable {
    let administrator: String
    let tenant: String
    let company: String
    let email: String
  }

  private static let linkRefused = HTTPProblem(.notFound, "The link is unknown, expired or used.")

  /// The invitation behind a link's secret, which is not used up by looking.
  func invitation(_ token: String) async throws -> Invitation {
    let (hash, now) = (BearerToken.hash(of: token), time.now().seconds)
    guard let invitation = try await store.read({ try $0.invitation(hash: hash) }), invitation.isValid(at: now) else {
      throw HTTPProblem.invalid("token", "is unknown, expired or used: ask for a new one")
    }
    return invitation
  }

  /// Uses a link: founds the company if the link is the first start's, and makes the account.
  @Sendable func setUp(_ call: Call) async throws -> Response {
    let body = try call.strict(SetUpBody.self)
    let now = time.now().seconds
    // Nobody guesses 256 random bits: a wrong link is no attempt that counts, and locks nobody out.
    let hash = BearerToken.hash(of: body.token)
    guard let invitation = try await store.read({ try $0.invitation(hash: hash) }), invitation.isValid(at: now) else {
      throw Self.linkRefused
    }
    guard (invitation.tenant == nil) == (body.company != nil), (invitation.email == nil) == (body.email != nil) else {
      throw HTTPProblem.invalid("company", "and email belong to the first link of a server, and to no other")
    }
    let record = try await passwords.record(
      of: Administration.password(body.password), for: FairLine.Party(account: invitation.id, address: call.address))
    let made = try await administration.accept(hash: hash, company: body.company, email: body.email, password: record)
    guard let (person, tenant) = made else { throw Self.linkRefused }
    watchers.wake(tenant: tenant.id)
    log.notice("tenant \(public: tenant.id): administrator \(public: person.id) joined")
    let view = SetUpView(
      administrator: person.id, tenant: tenant.id, company: tenant.name, email: person.email)
    return .json(view, status: .created)
  }
}
