import CofferAPI
import CofferCrypto
import CofferServerSQLite
import CofferSystem
import Foundation
import HTTPTypes
import Hummingbird
import Testing

@testable import CofferServer

/// Every route × everyone who might call × whose resource: a route without a rule fails.
@Suite struct AccessTests {
  static func key(_ route: Route) -> String { "\(route.method.rawValue) \(route.path.description)" }

  /// How a caller shows who it is, and what it may then do.
  struct Caller: Sendable {
    let name: String
    let headers: HTTPFields
    /// Nil: nobody who is known.
    var scopes: Set<String>?
    var isPerson = false
    var isDevice = false
    var isForeign = false
    /// Has a scope, and no role's whole set.
    var isNarrow = false
    /// A session without what a page of this server sends beside the cookie.
    var isForged = false

    func expects(_ rule: AccessTable.Rule, changes: Bool) -> Int {
      switch rule.audience {
      case .anyone: return rule.success
      case .device: return isDevice ? rule.success : 401
      case .person:
        guard isPerson else { return 401 }
        return isForged && changes ? 403 : rule.success
      case .personWith(let scope):
        guard isPerson else { return 401 }
        return isForged && changes || scopes?.contains(scope) != true ? 403 : rule.success
      case .scope(let scope):
        guard let scopes else { return 401 }
        if isForged && changes { return 403 }
        return scopes.contains(scope) && !(rule.givesMore && isNarrow) ? rule.success : 403
      }
    }
  }

  @Test func `every route has a rule and every rule a route`() throws {
    let keys = try Harness().server.routes.map(Self.key)
    #expect(Set(keys) == Set(AccessTable.rules.keys))
    #expect(Set(keys).count == keys.count)
  }

  @Test func `every permission is in the table, and no role has another`() {
    #expect(AccessTable.scopes["owner"] == Set(Permission.allCases.map(\.rawValue)))
    for role in Role.allCases {
      #expect(AccessTable.scopes[role.rawValue] == Set(role.permissions.map(\.rawValue)))
    }
  }

  /// Everybody, in one company's view.
  static func callers(_ fixture: AccessTable.Fixture, _ other: AccessTable.Fixture) async throws -> [Caller] {
    func bearer(_ token: String) -> HTTPFields { [.authorization: "Bearer \(token)"] }
    let (company, harness) = (fixture.company, fixture.company.harness)
    let expired = try await harness.administration.createToken(tenant: company.tenant.id, role: .owner, lifetime: 60)
    let deviceToken = try await fixture.device.token()
    harness.time.advance(61)
    // What was a credential a second ago, of each kind.
    let (oldDevice, oldSession) = (BearerToken(.device), BearerToken(.session))
    let now = harness.time.seconds
    try await harness.store.write { transaction in
      try transaction.insertDeviceToken(
        hash: oldDevice.hash, device: fixture.device.enrollment.deviceId, expiresAt: now, now: 0)
      let session = Session(
        id: UUID().uuidString.lowercased(), tenant: company.tenant.id,
        administrator: fixture.person.administrator.id, createdAt: now - Session.idleTime,
        lastSeenAt: now - Session.idleTime)
      try transaction.insert(session, hash: oldSession.hash, now: now)
    }
    let oldPage: HTTPFields = [
      .cookie: "coffer=\(oldSession.text)", .csrfToken: SessionCookie.csrfToken(of: oldSession.text),
      .fetchSite: "same-origin",
    ]
    let scopes = AccessTable.scopes
    var callers = [
      Caller(name: "nobody", headers: [:]),
      Caller(name: "an unknown token", headers: bearer(BearerToken(.api).text)),
      Caller(name: "an expired token", headers: bearer(expired.secret.text)),
      Caller(name: "an expired device token", headers: bearer(oldDevice.text)),
      Caller(name: "an expired session", headers: oldPage),
      Caller(name: "an unknown session", headers: [.cookie: "coffer=\(BearerToken(.session).text)"]),
      Caller(name: "a session as a token", headers: bearer(fixture.person.session.text)),
      Caller(name: "a token as a session", headers: [.cookie: "coffer=\(company.owner)"]),
      Caller(name: "owner", headers: bearer(company.owner), scopes: scopes["owner"]),
      Caller(name: "editor", headers: bearer(company.editor), scopes: scopes["editor"]),
      Caller(name: "auditor", headers: bearer(company.auditor), scopes: scopes["auditor"]),
      Caller(name: "device", headers: bearer(deviceToken), isDevice: true),
      Caller(
        name: "another company's owner", headers: bearer(other.company.owner), scopes: scopes["owner"],
        isForeign: true),
      Caller(
        name: "another company's device", headers: bearer(try await other.device.token()), isDevice: true,
        isForeign: true),
    ]
    for role in Role.allCases {
      let person = try await Person(company, role)
      callers.append(
        Caller(
          name: "signed-in \(role)", headers: person.headers, scopes: scopes[role.rawValue], isPerson: true))
    }
    let forged = HTTPFields([HTTPField(name: .cookie, value: fixture.person.cookie)])
    callers.append(
      Caller(name: "a cookie alone", headers: forged, scopes: scopes["owner"], isPerson: true, isForged: true))
    for permission in Permission.allCases {
      let token = try await harness.administration.createToken(
        tenant: company.tenant.id, role: .owner, scopes: [permission])
      callers.append(
        Caller(
          name: permission.rawValue, headers: bearer(token.secret.text), scopes: [permission.rawValue], isNarrow: true))
    }
    return callers
  }

  static func fixture(_ harness: Harness, _ name: String) async throws -> AccessTable.Fixture {
    let company = try await harness.company(name)
    return AccessTable.Fixture(company: company, person: try await Person(company), device: try await company.enroll())
  }

  @Test(arguments: AccessTable.rules.keys.sorted())
  func `a route answers whom it is for, and nobody else`(key: String) async throws {
    let rule = try #require(AccessTable.rules[key])
    let changes = !key.hasPrefix("GET")
    var names: [String]?
    var index = 0
    // What a success changes is there anew for the next caller.
    while names.map({ index < $0.count }) ?? true {
      let harness = try Harness()
      let (fixture, other) = (try await Self.fixture(harness, "Acme"), try await Self.fixture(harness, "Other"))
      let callers = try await Self.callers(fixture, other)
      names = callers.map(\.name)
      let prepared = try await rule.prepare(fixture)
      while index < callers.count {
        let caller = callers[index]
        index += 1
        let status = try await Self.check(key, rule, prepared, caller, fixture, other)
        if changes && status < 400 { break }
      }
    }
  }

  /// Sends the request as `caller`, and holds the answer and what it left against the table.
  private static func check(
    _ key: String, _ rule: AccessTable.Rule, _ prepared: AccessTable.Prepared, _ caller: Caller,
    _ fixture: AccessTable.Fixture, _ other: AccessTable.Fixture
  ) async throws -> Int {
    let harness = fixture.company.harness
    let before = (try await state(fixture), try await state(other))
    let reply = try await send(key, prepared, caller, harness)
    // What has a name of its own is absent for another company's owner.
    let isForeign = caller.isForeign && caller.scopes != nil && isNamed(key) && !key.contains("revisions")
    let expected = isForeign ? 404 : caller.expects(rule, changes: !key.hasPrefix("GET"))
    let isOtherRevision = caller.isForeign && prepared.headers[.ifMatch] != nil && !isForeign && expected < 400
    if isOtherRevision {
      // The other company's own thing, which the tag is not of, or happens to be.
      #expect([200, 412].contains(reply.status), "\(key) by \(caller.name)")
    } else {
      #expect(
        reply.status == expected, "\(key) by \(caller.name): \(String(decoding: reply.body, as: UTF8.self))")
    }
    if reply.status >= 400 { #expect(reply.problem != nil, "\(key) by \(caller.name)") }
    if isForeign {
      var absent = prepared
      absent.id = UUID().uuidString.lowercased()
      let nothing = try await send(key, absent, caller, harness)
      #expect(nothing.status == reply.status && nothing.headers == reply.headers && nothing.body == reply.body)
    }
    // Nobody but the company's own did anything to it, and a refusal nothing at all.
    let after = (try await state(fixture), try await state(other))
    let isAnyone = if case .anyone = rule.audience { true } else { false }
    if !isAnyone && (reply.status >= 400 || caller.isForeign) {
      #expect(after.0 == before.0, "\(key) by \(caller.name)")
    }
    if reply.status >= 400 || !caller.isForeign { #expect(after.1 == before.1, "\(key) by \(caller.name)") }
    return reply.status
  }

  static func isNamed(_ key: String) -> Bool { key.contains("{id}") }

  private static func send(
    _ key: String, _ prepared: AccessTable.Prepared, _ caller: Caller, _ harness: Harness
  ) async throws -> Reply {
    let (method, path) = split(key, id: prepared.id, command: prepared.command)
    var headers = caller.headers
    for field in prepared.headers { headers[field.name] = field.value }
    return try await harness.send(method, path, headers: headers, json: prepared.body, type: prepared.type)
  }

  /// Policy, apps' states and audit of a company: what every change shows in.
  private static func state(_ fixture: AccessTable.Fixture) async throws -> [String] {
    let tenant = fixture.company.tenant.id
    return try await fixture.company.harness.store.read { transaction in
      [
        try transaction.currentRevision(tenant: tenant)?.digest ?? "",
        try transaction.lastAuditRecord(tenant: tenant)?.hash.hexadecimal ?? "",
        "\(try transaction.devices(tenant: tenant).count)",
      ]
    }
  }

  @Test(arguments: AccessTable.rules.keys.sorted())
  func `a store that fails answers 503 and lets nothing through`(key: String) async throws {
    let rule = try #require(AccessTable.rules[key])
    let harness = try Harness()
    let fixture = try await Self.fixture(harness, "Acme")
    var caller = Caller(name: "owner", headers: fixture.person.headers)
    if case .device = rule.audience {
      caller = Caller(name: "device", headers: [.authorization: "Bearer \(try await fixture.device.token())"])
    }
    let prepared = try await rule.prepare(fixture)
    // These do not come to the store with what is sent here.
    let isWithout = ["GET /metrics", "GET /v1/openapi.json", "POST /v1/device/receipts"].contains(key)
    for error in [StoreError.unavailable(code: 13), .damaged("role")] {
      harness.faults.fail(error)
      let reply = try await Self.send(key, prepared, caller, harness)
      if isWithout { continue }
      #expect(reply.status == 503)
      #expect(reply.problem == "unavailable")
      #expect(reply.headers[.retryAfter].flatMap { Int($0) } ?? 0 > 0)
    }
    harness.faults.fail(nil)
    #expect(try await Self.send(key, prepared, caller, harness).status == rule.success)
  }

  @Test func `a token that expired is unknown`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let token = try await harness.administration.createToken(tenant: company.tenant.id, role: .owner, lifetime: 60)
    #expect(try await harness.send(.get, "/items", token: token.secret.text).status == 200)
    harness.time.advance(59)
    #expect(try await harness.send(.get, "/items", token: token.secret.text).status == 200)
    harness.time.advance(1)
    let expired = try await harness.send(.get, "/items", token: token.secret.text)
    let unknown = try await harness.send(.get, "/items", token: BearerToken(.api).text)
    #expect(expired.status == 401)
    #expect(expired.body == unknown.body)
    #expect(expired.headers == unknown.headers)
  }

  @Test(arguments: ["Basic TOKEN", "Bearer", "Bearer  TOKEN", "TOKEN", "Bearer TOKEN x", "Bearer token"])
  func `a header that is not one bearer token is refused`(header: String) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let fields: HTTPFields = [.authorization: header.replacing("TOKEN", with: company.owner)]
    #expect(try await harness.send(.get, "/items", headers: fields).status == 401)
  }

  @Test func `two authorization headers are refused and any case of the scheme is read`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    var twice = HTTPFields()
    twice.append(HTTPField(name: .authorization, value: "Bearer \(company.owner)"))
    twice.append(HTTPField(name: .authorization, value: "Bearer \(company.owner)"))
    #expect(try await harness.send(.get, "/items", headers: twice).status == 401)
    let lower: HTTPFields = [.authorization: "bearer \(company.owner)"]
    #expect(try await harness.send(.get, "/items", headers: lower).status == 200)
  }

  @Test func `one company's list never shows another's`() async throws {
    let harness = try Harness()
    let (company, other) = (try await harness.company(), try await harness.company("Other"))
    let item = try await company.add()
    let device = try await company.enroll()
    // The same app may be approved by both.
    let foreign = try await other.add()
    #expect(foreign.id != item.id)
    #expect(try await harness.send(.get, "/items", token: other.owner).json([Item].self) == [foreign])
    #expect(try await harness.send(.get, "/items", token: company.auditor).json([Item].self) == [item])
    #expect(try await harness.send(.get, "/v1/devices", token: other.owner).body == Array(#"{"items":[]}"#.utf8))
    let own = try await harness.send(.get, "/v1/devices", token: company.auditor)
    #expect(String(decoding: own.body, as: UTF8.self).contains(device.enrollment.deviceId))
  }

  static func split(
    _ key: String, id: String, command: String = ""
  ) -> (method: HTTPRequest.Method, path: String) {
    let parts = key.split(separator: " ")
    let path = String(parts[1]).replacing("{id}", with: id).replacing("{command}", with: command)
    return (HTTPRequest.Method(rawValue: String(parts[0]))!, path)
  }
}
