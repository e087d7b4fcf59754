import CofferServerSQLite
import Foundation
import HTTPTypes
import Hummingbird
import Testing

@testable import CofferServer

/// Every page and form of the console × everyone who might send it × whose thing: one without a row fails.
@Suite struct ConsoleAccessTests {
  @Test func `every route of the console has a row and every row a route`() throws {
    let keys = Console(server: try Harness().server).routes.map { "\($0.method.rawValue) \($0.path.description)" }
    #expect(Set(keys) == Set(ConsoleTable.rows.keys).union(ConsoleTable.open))
    #expect(Set(keys).count == keys.count)
  }

  private static let forms = ConsoleTable.rows.keys.filter { $0.hasPrefix("POST") }.sorted()
  private static let pages = ConsoleTable.rows.keys.filter { $0.hasPrefix("GET") }.sorted()

  /// What every change shows in.
  private static func state(_ fixture: AccessTable.Fixture) async throws -> [UInt8]? {
    try await fixture.company.harness.store.read {
      try $0.lastAuditRecord(tenant: fixture.company.tenant.id)?.hash
    }
  }

  private static func send(
    _ key: String, _ prepared: ConsoleTable.Prepared, _ headers: HTTPFields, tokens: [String], _ harness: Harness
  ) async throws -> Reply {
    let (method, path) = AccessTests.split(key, id: prepared.id, command: prepared.command)
    guard method == .post else { return try await harness.send(method, path, headers: headers) }
    let fields = prepared.fields + tokens.map { ("csrf", $0) }
    return try await harness.send(
      method, path, headers: headers, json: ConsoleTests.encoded(fields), type: "application/x-www-form-urlencoded")
  }

  private static func cookie(_ person: Person, _ more: HTTPFields = [.fetchSite: "same-origin"]) -> HTTPFields {
    var headers = more
    headers[.cookie] = person.cookie
    return headers
  }

  @Test(arguments: forms) func `a form that is not from a page of the session does nothing`(key: String) async throws {
    let row = try #require(ConsoleTable.rows[key])
    let harness = try Harness()
    let fixture = try await AccessTests.fixture(harness, "Acme")
    let other = try await AccessTests.fixture(harness, "Other")
    let (person, colleague) = (fixture.person, try await Person(fixture.company))
    let prepared = try await row.prepare(fixture)
    let (own, ownPage) = (person.csrfToken, Self.cookie(person))
    let attempts: [(name: String, headers: HTTPFields, tokens: [String])] = [
      ("no token", ownPage, []), ("an empty token", ownPage, [""]),
      ("a colleague's token", ownPage, [colleague.csrfToken]),
      ("another company's token", ownPage, [other.person.csrfToken]), ("two tokens", ownPage, [own, own]),
      ("the session itself", ownPage, [person.session.text]),
      ("another site", Self.cookie(person, [.fetchSite: "cross-site"]), [own]),
      ("another origin of the site", Self.cookie(person, [.fetchSite: "same-site"]), [own]),
      ("a typed address", Self.cookie(person, [.fetchSite: "none"]), [own]),
      ("another origin", Self.cookie(person, [.origin: "http://evil.example"]), [own]),
      ("no origin that may be told", Self.cookie(person, [.origin: "null"]), [own]),
      ("no browser", Self.cookie(person, [:]), [own]),
    ]
    for attempt in attempts {
      let before = try await Self.state(fixture)
      let reply = try await Self.send(key, prepared, attempt.headers, tokens: attempt.tokens, harness)
      #expect(reply.status == 403, "\(key) with \(attempt.name)")
      #expect(try await Self.state(fixture) == before, "\(key) with \(attempt.name)")
      ConsoleTests.expectSafe(reply)
    }
    // The token of a page is enough with Origin alone, too: so browsers without Sec-Fetch-Site send it.
    let reply = try await Self.send(
      key, prepared, Self.cookie(person, [.origin: "http://localhost"]), tokens: [own], harness)
    #expect(reply.status == row.success, "\(key): \(String(decoding: reply.body, as: UTF8.self).suffix(2000))")
    ConsoleTests.expectSafe(reply)
  }

  @Test(arguments: forms + pages) func `nobody without a session gets beyond the entrance`(key: String) async throws {
    let row = try #require(ConsoleTable.rows[key])
    let harness = try Harness()
    let fixture = try await AccessTests.fixture(harness, "Acme")
    let prepared = try await row.prepare(fixture)
    let token = "Bearer \(fixture.company.owner)"
    for headers: HTTPFields in [
      [.fetchSite: "same-origin"], [.fetchSite: "same-origin", .cookie: "coffer=\(BearerToken(.session).text)"],
      [.fetchSite: "same-origin", .authorization: token],
      [.fetchSite: "same-origin", .authorization: token, .cookie: fixture.person.cookie],
    ] {
      let before = try await Self.state(fixture)
      let reply = try await Self.send(key, prepared, headers, tokens: [fixture.person.csrfToken], harness)
      #expect(reply.status == 303 && reply.headers[.location] == "/console/sign-in", "\(key)")
      #expect(reply.body.isEmpty)
      #expect(try await Self.state(fixture) == before)
    }
  }

  @Test(arguments: forms + pages) func `each role sees and does what the table says`(key: String) async throws {
    let row = try #require(ConsoleTable.rows[key])
    let harness = try Harness()
    for role in Role.allCases {
      let fixture = try await AccessTests.fixture(harness, "Acme \(role)")
      let person = try await Person(fixture.company, role)
      let prepared = try await row.prepare(fixture)
      let isAllowed = row.scope.map { AccessTable.scopes[role.rawValue]?.contains($0) == true } ?? true
      let before = try await Self.state(fixture)
      let reply = try await Self.send(key, prepared, Self.cookie(person), tokens: [person.csrfToken], harness)
      #expect(reply.status == (isAllowed ? row.success : 403), "\(key) by \(role)")
      if !isAllowed { #expect(try await Self.state(fixture) == before, "\(key) by \(role)") }
    }
  }

  // Every company has a revision of each number.
  @Test(arguments: (forms + pages).filter { $0.contains("{id}") && !$0.contains("revisions") })
  func `another company's thing is absent`(key: String) async throws {
    let row = try #require(ConsoleTable.rows[key])
    let harness = try Harness()
    let fixture = try await AccessTests.fixture(harness, "Acme")
    let other = try await AccessTests.fixture(harness, "Other")
    var prepared = try await row.prepare(fixture)
    let before = (try await Self.state(fixture), try await Self.state(other))
    let headers = Self.cookie(other.person)
    let foreign = try await Self.send(key, prepared, headers, tokens: [other.person.csrfToken], harness)
    prepared.id = UUID().uuidString.lowercased()
    let absent = try await Self.send(key, prepared, headers, tokens: [other.person.csrfToken], harness)
    #expect(foreign.status == 404 && absent.status == 404, "\(key)")
    #expect(foreign.body == absent.body && foreign.headers == absent.headers)
    let after = (try await Self.state(fixture), try await Self.state(other))
    #expect(before.0 == after.0 && before.1 == after.1)
  }

  @Test(arguments: (forms + pages).filter { $0 != "POST /console/audit/export" })
  func `a store that fails is told on a page, and lets nothing through`(key: String) async throws {
    let row = try #require(ConsoleTable.rows[key])
    let harness = try Harness()
    let fixture = try await AccessTests.fixture(harness, "Acme")
    let prepared = try await row.prepare(fixture)
    let headers = Self.cookie(fixture.person)
    harness.faults.fail(.unavailable(code: 13))
    let reply = try await Self.send(key, prepared, headers, tokens: [fixture.person.csrfToken], harness)
    #expect(reply.status == 503)
    #expect(reply.headers[.retryAfter] != nil)
    ConsoleTests.expectSafe(reply)
  }
}
