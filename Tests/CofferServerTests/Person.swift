import CofferCrypto
import CofferServerSQLite
import CofferSystem
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// An administrator of a ``Company`` who is signed in.
struct Person: Sendable {
  static let password = "correct horse battery"
  /// Derived once: what a derivation costs is not what these tests are about.
  private static let record = Result { try PasswordRecord(SecretsTests.secret(password), costExponent: 14) }

  let company: Company
  let administrator: Administrator
  let session: BearerToken

  var email: String { administrator.email }
  var csrfToken: String { SessionCookie.csrfToken(of: session.text) }
  var cookie: String { "coffer=\(session.text)" }

  /// What a page of this server sends.
  var headers: HTTPFields { [.cookie: cookie, .csrfToken: csrfToken, .fetchSite: "same-origin"] }

  init(_ company: Company, _ role: Role = .owner, email: String? = nil) async throws {
    let harness = company.harness
    let now = harness.time.seconds
    let person = Administrator(
      id: UUID().uuidString.lowercased(), tenant: company.tenant.id,
      email: email ?? "\(UUID().uuidString.lowercased())@example.com", role: role, password: try Self.record.get(),
      createdAt: now)
    let secret = BearerToken(.session)
    let session = Session(
      id: UUID().uuidString.lowercased(), tenant: person.tenant, administrator: person.id, createdAt: now,
      lastSeenAt: now)
    try await harness.store.write { transaction in
      _ = try transaction.insert(person)
      try transaction.insert(session, hash: secret.hash, now: now)
    }
    self.company = company
    administrator = person
    self.session = secret
  }

  func send(
    _ method: HTTPRequest.Method, _ path: String, json: String? = nil, headers more: HTTPFields = [:]
  ) async throws -> Reply {
    var headers = headers
    for field in more { headers[field.name] = field.value }
    return try await company.harness.send(method, path, headers: headers, json: json)
  }
}

extension Company {
  /// The ETag of what is at `path`.
  func tag(_ path: String, token: String? = nil) async throws -> String {
    let reply = try await harness.send(.get, path, token: token ?? owner)
    #expect(reply.status == 200)
    return try #require(reply.headers[.eTag])
  }

  /// Makes something and returns its id.
  func make(_ path: String, _ json: String) async throws -> String {
    struct Made: Decodable { let id: String }
    let reply = try await harness.send(.post, path, token: owner, json: json)
    #expect(reply.status == 201, "\(path): \(String(decoding: reply.body, as: UTF8.self))")
    return try reply.json(Made.self).id
  }

  static func app(_ bundleId: String = "com.acme.editor", more: String = "") -> String {
    """
    {"name":"Acme Editor","bundleId":"\(bundleId)","teamId":"ACME","extensions":["docx"],"actions":["openIn"]\(more)}
    """
  }

  func auditEntries() async throws -> [AuditEntry] {
    try await harness.store.read { try $0.auditRecords(tenant: self.tenant.id, after: 0, limit: 10_000) }
      .map { try JSONDecoder().decode(AuditEntry.self, from: Data($0.entry)) }
  }
}
