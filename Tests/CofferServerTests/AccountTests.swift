import CofferAPI
import CofferCrypto
import CofferServerSQLite
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// How people come to administer a company, and how far their power reaches.
@Suite struct AccountTests {
  private static func setUp(_ link: String, _ more: String = "", password: String = "a password of mine") -> String {
    #"{"token":"\#(link.split(separator: "#").last ?? "")","password":"\#(password)"\#(more)}"#
  }

  private static let founding = #","company":"Acme","email":"first@example.com""#

  @Test func `the first start's link founds a company, once`() async throws {
    let harness = try Harness()
    let old = try #require(try await harness.administration.createSetUpLink())
    let link = try #require(try await harness.administration.createSetUpLink())
    #expect(link.hasPrefix("/setup#coffer_invitation_"))
    // Another start made another link.
    #expect(try await harness.send(.post, "/v1/setup", json: Self.setUp(old, Self.founding)).status == 404)
    #expect(try await harness.send(.post, "/v1/setup", json: Self.setUp(link)).status == 422)
    let weak = Self.setUp(link, Self.founding, password: "short")
    #expect(try await harness.send(.post, "/v1/setup", json: weak).status == 422)
    let made = try await harness.send(.post, "/v1/setup", json: Self.setUp(link, Self.founding))
    #expect(made.status == 201)
    #expect(try await harness.send(.post, "/v1/setup", json: Self.setUp(link, Self.founding)).status == 404)
    let body = SessionTests.body("first@example.com", "a password of mine")
    let signedIn = try await harness.send(.post, "/v1/session", json: body)
    #expect(signedIn.status == 201)
    #expect(try signedIn.json(SessionTests.View.self).role == "owner")
    // Somebody administers the server: no start lets anybody else in.
    #expect(try await harness.administration.createSetUpLink() == nil)
  }

  @Test func `a set-up link is over after a day, and of two who use it at once one founds`() async throws {
    let harness = try Harness()
    let late = try #require(try await harness.administration.createSetUpLink())
    harness.time.advance(Administration.setUpLifetime)
    #expect(try await harness.send(.post, "/v1/setup", json: Self.setUp(late, Self.founding)).status == 404)
    let link = try #require(try await harness.administration.createSetUpLink())
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for index in 0..<3 {
        let more = #","company":"Company \#(index)","email":"first@example.com""#
        group.addTask { try await harness.send(.post, "/v1/setup", json: Self.setUp(link, more)).status }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses.sorted() == [201, 404, 404])
  }

  @Test func `an invited person gets the role and the company of the invitation`() async throws {
    struct Made: Decodable {
      let id: String
      let link: String?
    }
    struct Listed: Decodable { let items: [Made] }
    let harness = try Harness()
    let company = try await harness.company()
    let made = try await harness.send(
      .post, "/v1/invitations", token: company.owner, json: #"{"email":"ed@example.com","role":"editor"}"#
    ).json(Made.self)
    let link = try #require(made.link)
    #expect(SecretsTests.contain(Array(link.split(separator: "#")[1].utf8), try SecretsTests.files(harness)).isEmpty)
    let list = try await harness.send(.get, "/v1/invitations", token: company.auditor).json(Listed.self)
    #expect(list.items.map(\.id) == [made.id] && list.items[0].link == nil)
    // Nobody joins another company or as somebody else with it.
    let other = Self.setUp(link, #","company":"Mine","email":"me@example.com""#)
    #expect(try await harness.send(.post, "/v1/setup", json: other).status == 422)
    #expect(try await harness.send(.post, "/v1/setup", json: Self.setUp(link)).status == 201)
    #expect(try await harness.send(.post, "/v1/setup", json: Self.setUp(link)).status == 404)
    let body = SessionTests.body("ed@example.com", "a password of mine")
    #expect(try await harness.send(.post, "/v1/session", json: body).json(SessionTests.View.self).role == "editor")
    let again = #"{"email":"ED@example.com","role":"editor"}"#
    #expect(try await harness.send(.post, "/v1/invitations", token: company.owner, json: again).status == 409)
    let revoked = try await harness.send(
      .post, "/v1/invitations", token: company.owner, json: #"{"email":"b@example.com","role":"editor"}"#
    ).json(Made.self)
    let path = "/v1/invitations/\(revoked.id)"
    #expect(try await harness.send(.delete, path, token: company.owner).status == 204)
    #expect(try await harness.send(.post, "/v1/setup", json: Self.setUp(revoked.link ?? "")).status == 404)
  }

  @Test func `no scope is a way to another`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let narrow = try await harness.administration.createToken(
      tenant: company.tenant.id, role: .owner, scopes: [.manageAccounts]
    ).secret.text
    func post(_ path: String, _ json: String) async throws -> Int {
      try await harness.send(.post, path, token: narrow, json: json).status
    }
    #expect(try await post("/v1/tokens", #"{"name":"n","role":"owner","expiresIn":3600}"#) == 403)
    #expect(
      try await post("/v1/tokens", #"{"name":"n","role":"owner","scopes":["keys:write"],"expiresIn":3600}"#) == 403)
    #expect(
      try await post("/v1/tokens", #"{"name":"n","role":"owner","scopes":["accounts:write"],"expiresIn":3600}"#) == 201)
    #expect(try await post("/v1/invitations", #"{"email":"a@example.com","role":"owner"}"#) == 403)
    // A scope that the role lacks is refused, and gives nothing where it is stored all the same.
    let body = #"{"name":"n","role":"auditor","scopes":["policy:write"],"expiresIn":3600}"#
    #expect(try await harness.send(.post, "/v1/tokens", token: company.owner, json: body).status == 422)
    let stored = try await harness.administration.createToken(
      tenant: company.tenant.id, role: .auditor, scopes: [.changePolicy, .readPolicy]
    ).secret.text
    #expect(try await harness.send(.post, "/items", token: stored, json: Company.item()).status == 403)
    #expect(try await harness.send(.get, "/items", token: stored).status == 200)
    #expect(try await harness.send(.get, "/v1/devices", token: stored).status == 403)
  }

  @Test func `a token is shown once, listed without its text, and gone when it is withdrawn`() async throws {
    struct Made: Decodable {
      let id: String
      let token: String
    }
    let harness = try Harness()
    let company = try await harness.company()
    let body = #"{"name":"ci","role":"editor","scopes":["policy:read"],"expiresIn":3600}"#
    let made = try await harness.send(.post, "/v1/tokens", token: company.owner, json: body).json(Made.self)
    #expect(try await harness.send(.get, "/items", token: made.token).status == 200)
    let list = try await harness.send(.get, "/v1/tokens", token: company.auditor)
    let text = String(decoding: list.body, as: UTF8.self)
    #expect(text.contains(made.id) && !text.contains(made.token) && !text.contains("coffer_api_"))
    #expect(try await harness.send(.delete, "/v1/tokens/\(made.id)", token: company.owner).status == 204)
    #expect(try await harness.send(.get, "/items", token: made.token).status == 401)
    #expect(try await harness.send(.delete, "/v1/tokens/\(made.id)", token: company.owner).status == 404)
  }

  @Test func `a company keeps an owner, and a role that was taken is gone at once`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (first, second) = (try await Person(company), try await Person(company))
    func change(_ person: Person, _ role: String, by caller: Person) async throws -> Int {
      let path = "/v1/administrators/\(person.administrator.id)"
      return try await caller.send(
        .put, path, json: #"{"role":"\#(role)"}"#, headers: [.ifMatch: try await company.tag(path)]
      ).status
    }
    #expect(try await change(second, "auditor", by: first) == 200)
    #expect(try await second.send(.post, "/v1/enrollments", json: "{}").status == 403)
    #expect(try await change(first, "auditor", by: second) == 403)
    #expect(try await change(first, "editor", by: first) == 409)
    let path = "/v1/administrators/\(first.administrator.id)"
    let tag = try await company.tag(path)
    #expect(try await first.send(.delete, path, headers: [.ifMatch: tag]).status == 409)
    #expect(try await first.send(.delete, path).status == 428)
    let other = "/v1/administrators/\(second.administrator.id)"
    #expect(try await first.send(.delete, other, headers: [.ifMatch: tag]).status == 412)
    #expect(try await first.send(.delete, other, headers: [.ifMatch: try await company.tag(other)]).status == 204)
    #expect(try await second.send(.get, "/v1/session").status == 401)
  }
}
