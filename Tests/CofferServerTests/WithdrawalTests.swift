import CofferAPI
import CofferCrypto
import CofferServerSQLite
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization
import Testing

@testable import CofferServer

/// What was withdrawn does nothing any more, however long before that its request began.
@Suite struct WithdrawalTests {
  /// Who calls, and how that is withdrawn.
  enum Credential: CaseIterable {
    case token, session, person, role, device
  }

  struct Case {
    let headers: HTTPFields
    let path: String
    let json: String
    let withdraw: @Sendable (any PolicyStore) async throws -> Void
  }

  static func example(_ credential: Credential, _ company: Company) async throws -> Case {
    let invitation = #"{"email":"new@example.com","role":"owner"}"#
    let tenant = company.tenant.id
    switch credential {
    case .token:
      let made = try await company.harness.administration.createToken(tenant: tenant, role: .owner)
      return Case(headers: bearer(made.secret.text), path: "/v1/invitations", json: invitation) { store in
        _ = try await store.write { try $0.deleteAPIToken(tenant: tenant, id: made.token.id) }
      }
    case .session, .person, .role:
      let person = try await Person(company)
      return Case(headers: person.headers, path: "/v1/invitations", json: invitation) { store in
        try await store.write { transaction in
          var known = try #require(try transaction.administrator(tenant: tenant, id: person.administrator.id))
          switch credential {
          case .session: try transaction.deleteSessions(administrator: known.id)
          case .person: try transaction.deleteAdministrator(tenant: tenant, id: known.id)
          default:
            known.role = .editor
            try transaction.update(known)
          }
        }
      }
    case .device:
      let device = try await company.enroll()
      let body = #"{"entries":[{"number":1,"entry":"{}"}]}"#
      return Case(headers: bearer(try await device.token()), path: "/v1/device/decisions", json: body) { store in
        _ = try await store.write { try $0.deleteDevice(tenant: tenant, id: device.enrollment.deviceId) }
      }
    }
  }

  private static func bearer(_ token: String) -> HTTPFields { [.authorization: "Bearer \(token)"] }

  /// What the company's changes show in.
  private static func state(_ company: Company) async throws -> [UInt8]? {
    try await company.harness.store.read { try $0.lastAuditRecord(tenant: company.tenant.id)?.hash }
  }

  @Test(arguments: Credential.allCases)
  func `what is withdrawn while the body comes does nothing`(credential: Credential) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let example = try await Self.example(credential, company)
    let before = try await Self.state(company)
    let parts = Mutex([ByteBuffer(string: example.json)])
    let body = AsyncThrowingStream<ByteBuffer, any Error> {
      // The server asks for the body: it knows who calls.
      guard let part = parts.withLock({ $0.popLast() }) else { return nil }
      try await example.withdraw(harness.store)
      return part
    }
    var headers = example.headers
    headers[.contentType] = "application/json"
    let reply = try await harness.send(.post, example.path, headers: headers, body: RequestBody(asyncSequence: body))
    #expect(reply.status == (credential == .role ? 403 : 401))
    #expect(try await Self.state(company) == before)
  }

  @Test(arguments: Credential.allCases)
  func `what is withdrawn right before the change does nothing`(credential: Credential) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let example = try await Self.example(credential, company)
    let before = try await Self.state(company)
    harness.faults.beforeNextWrite(example.withdraw)
    #expect(try await harness.send(.post, example.path, headers: example.headers, json: example.json).status == 401)
    #expect(try await Self.state(company) == before)
  }

  @Test func `a removed person's own account changes nothing, and the root key stays`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    let id = person.administrator.id
    harness.faults.beforeNextWrite { store in
      try await store.write { try $0.deleteAdministrator(tenant: company.tenant.id, id: id) }
    }
    let body = #"{"password":"\#(Person.password)","passphrase":"a passphrase for the safe"}"#
    #expect(try await person.send(.post, "/v1/keys/root-export", json: body).status == 401)
    let tenant = try #require(try await harness.store.read { try $0.tenant(id: company.tenant.id) })
    #expect(tenant.rootExportedAt == nil)
  }

  @Test func `nobody withdraws what reaches beyond the own permissions`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let narrow = try await harness.administration.createToken(
      tenant: company.tenant.id, role: .owner, scopes: [.manageAccounts, .readAccounts]
    ).secret.text
    let token = try await company.make("/v1/tokens", #"{"name":"ci","role":"owner","expiresIn":3600}"#)
    let invitation = try await company.make("/v1/invitations", #"{"email":"a@example.com","role":"owner"}"#)
    for path in ["/v1/tokens/\(token)", "/v1/invitations/\(invitation)"] {
      #expect(try await harness.send(.delete, path, token: narrow).status == 403)
      #expect(try await harness.send(.delete, path, token: company.owner).status == 204)
    }
  }

  private struct Made: Decodable {
    let id: String
    var token: String?
    var link: String?
    var code: String?
  }

  private static func make(
    _ company: Company, _ path: String, _ json: String, headers: HTTPFields
  ) async throws -> Made {
    let reply = try await company.harness.send(.post, path, headers: headers, json: json)
    #expect(reply.status == 201)
    return try reply.json()
  }

  /// Makes a token, with that another, and with that an invitation and a code.
  private static func makeChain(_ company: Company, by headers: HTTPFields) async throws -> [Made] {
    let token = #"{"name":"n","role":"owner","expiresIn":3600}"#
    let first = try await make(company, "/v1/tokens", token, headers: headers)
    let second = try await make(company, "/v1/tokens", token, headers: bearer(first.token ?? ""))
    let by = bearer(second.token ?? "")
    let editing = #"{"name":"n","role":"editor","expiresIn":3600}"#
    let invitation = #"{"email":"again@example.com","role":"owner"}"#
    return [
      first, second, try await make(company, "/v1/invitations", invitation, headers: by),
      try await make(company, "/v1/enrollments", "{}", headers: by),
      try await make(company, "/v1/tokens", editing, headers: by),
    ]
  }

  /// What of the chain still does something: the tokens, the link, the code, the editor's token.
  private static func working(_ chain: [Made], _ company: Company) async throws -> [Bool] {
    let harness = company.harness
    func works(_ token: String?) async throws -> Bool {
      try await harness.send(.get, "/items", token: token).status == 200
    }
    let setUp = #"{"token":"\#(chain[2].link?.split(separator: "#").last ?? "")","password":"a password of mine"}"#
    let code = try #require(chain[3].code.flatMap { EnrollmentCode($0) })
    return [
      try await works(chain[0].token), try await works(chain[1].token),
      try await harness.send(.post, "/v1/setup", json: setUp).status == 201,
      try await harness.send(.post, "/v1/enroll", json: Company.enrollment(code.secret)).status == 201,
      try await works(chain[4].token),
    ]
  }

  @Test(arguments: ["removed", "editor", "auditor", "token"])
  func `what somebody gave goes with the power to give it`(end: String) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    let chain = try await Self.makeChain(company, by: person.headers)
    let other = try await Self.makeChain(company, by: (try await Person(company)).headers)
    let path = end == "token" ? "/v1/tokens/\(chain[0].id)" : "/v1/administrators/\(person.administrator.id)"
    let headers: HTTPFields = end == "token" ? [:] : [.ifMatch: try await company.tag(path)]
    let reply =
      ["removed", "token"].contains(end)
      ? try await harness.send(.delete, path, token: company.owner, headers: headers)
      : try await harness.send(.put, path, token: company.owner, headers: headers, json: #"{"role":"\#(end)"}"#)
    #expect([200, 204].contains(reply.status))
    let isEditor = end == "editor"
    #expect(try await Self.working(chain, company) == [false, false, false, isEditor, isEditor])
    #expect(try await Self.working(other, company) == [true, true, true, true, true])
    let actions = try await company.auditEntries().map(\.action)
    #expect(actions.contains("invitation.revoked") && actions.contains("token.revoked"))
  }

  @Test func `an invitation is accepted only while its maker may still give the role`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    let invitation = #"{"email":"again@example.com","role":"owner"}"#
    let made = try await Self.make(company, "/v1/invitations", invitation, headers: person.headers)
    // As if the demotion had not found it.
    try await harness.store.write { transaction in
      var known = try #require(
        try transaction.administrator(tenant: company.tenant.id, id: person.administrator.id))
      known.role = .editor
      try transaction.update(known)
    }
    let setUp = #"{"token":"\#(made.link?.split(separator: "#").last ?? "")","password":"a password of mine"}"#
    #expect(try await harness.send(.post, "/v1/setup", json: setUp).status == 404)
  }
}
