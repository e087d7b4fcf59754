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
    struct Made: Decodable { let id: String }
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
}
