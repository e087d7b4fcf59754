import CofferAPI
import CofferCrypto
import Foundation
import HTTPTypes
import Hummingbird
import Testing

@testable import CofferServer

/// Every route × everyone who might call × whose resource: a route without a rule fails.
@Suite struct AccessTests {
  /// Who a route is for, and a request to it that succeeds.
  struct Rule: Sendable {
    enum Audience: CaseIterable { case anyone, reader, changer, device }

    let audience: Audience
    let success: Int
    var body: @Sendable (EnrolledDevice) async throws -> String? = { _ in nil }
    var type = "application/json"
  }

  static let rules: [String: Rule] = [
    "GET /health": Rule(audience: .anyone, success: 200),
    "GET /items": Rule(audience: .reader, success: 200),
    "POST /items": Rule(audience: .changer, success: 201) { _ in Company.item("com.acme.\(UUID().uuidString)") },
    "GET /items/{id}": Rule(audience: .reader, success: 200),
    "PUT /items/{id}": Rule(audience: .changer, success: 200) { _ in Company.item("com.acme.\(UUID().uuidString)") },
    "DELETE /items/{id}": Rule(audience: .changer, success: 204),
    "GET /v1/settings": Rule(audience: .reader, success: 200),
    "PUT /v1/settings": Rule(audience: .changer, success: 200) { _ in
      #"{"ownerActions":["import"],"allowFilteredTier":true}"#
    },
    "GET /v1/devices": Rule(audience: .reader, success: 200),
    "DELETE /v1/devices/{id}": Rule(audience: .changer, success: 204),
    "POST /v1/enroll": Rule(audience: .anyone, success: 201) { Company.enrollment(try await $0.company.code().secret) },
    "POST /v1/device/token": Rule(
      audience: .anyone, success: 200, body: { EnrolledDevice.form(try $0.assertion()) },
      type: "application/x-www-form-urlencoded"),
    "GET /v1/device/policy": Rule(audience: .device, success: 200),
    "POST /v1/device/status": Rule(audience: .device, success: 200) { _ in #"{"nonce":"\#(Self.nonce)"}"# },
  ]

  static let nonce = String(repeating: "A", count: 43)

  static func key(_ route: Route) -> String { "\(route.method.rawValue) \(route.path.description)" }

  enum Caller: CaseIterable, Sendable {
    case nobody, nonsense, owner, editor, auditor, device, foreignOwner

    func token(_ company: Company, _ device: EnrolledDevice, _ other: Company) async throws -> String? {
      switch self {
      case .nobody: nil
      case .nonsense: BearerToken(.api).text
      case .owner: company.owner
      case .editor: company.editor
      case .auditor: company.auditor
      case .device: try await device.token()
      case .foreignOwner: other.owner
      }
    }

    func status(for rule: Rule) -> Int {
      switch (rule.audience, self) {
      case (.anyone, _): rule.success
      case (.reader, .owner), (.reader, .editor), (.reader, .auditor), (.reader, .foreignOwner): rule.success
      case (.changer, .owner), (.changer, .editor), (.changer, .foreignOwner): rule.success
      case (.changer, .auditor): 403
      case (.device, .device): rule.success
      default: 401
      }
    }
  }

  @Test func `every route has a rule and every rule a route`() throws {
    let keys = try Harness().server.routes.map(Self.key)
    #expect(Set(keys) == Set(Self.rules.keys))
    #expect(Set(keys).count == keys.count)
  }

  @Test(arguments: rules.keys.sorted(), Caller.allCases)
  func `a route answers whom it is for`(key: String, caller: Caller) async throws {
    let rule = try #require(Self.rules[key])
    let harness = try Harness()
    let (company, other) = (try await harness.company(), try await harness.company("Other"))
    let (device, item) = (try await company.enroll(), try await company.add())
    let (method, path) = Self.split(key, id: key.contains("devices") ? device.enrollment.deviceId : item.id)
    let body = try await rule.body(device)
    let token = try await caller.token(company, device, other)
    let before = (try await harness.current(company.tenant), try await harness.current(other.tenant))

    let reply = try await harness.send(method, path, token: token, json: body, type: rule.type)
    // What has a name of its own is absent for another company's owner.
    let isForeign = caller == .foreignOwner && key.hasSuffix("{id}")
    let expected = isForeign ? 404 : caller.status(for: rule)
    #expect(reply.status == expected, "\(String(decoding: reply.body, as: UTF8.self))")
    if expected >= 400 { #expect(reply.problem != nil) }
    #expect((reply.headers[.wwwAuthenticate] != nil) == (expected == 401))
    if isForeign {
      let absent = Self.split(key, id: UUID().uuidString.lowercased()).path
      let nothing = try await harness.send(method, absent, token: token, json: body, type: rule.type)
      #expect(nothing.status == reply.status)
      #expect(nothing.headers == reply.headers)
      #expect(nothing.body == reply.body)
    }
    // Nobody but the company's own changed its policy, and a refusal changed nothing.
    let after = (try await harness.current(company.tenant), try await harness.current(other.tenant))
    if expected >= 400 || caller == .foreignOwner { #expect(after.0.number == before.0.number) }
    if expected >= 400 || caller != .foreignOwner { #expect(after.1.number == before.1.number) }
  }

  @Test(arguments: rules.keys.sorted())
  func `a store that fails answers 503 and lets nothing through`(key: String) async throws {
    let rule = try #require(Self.rules[key])
    let harness = try Harness()
    let company = try await harness.company()
    let (device, item) = (try await company.enroll(), try await company.add())
    let (method, path) = Self.split(key, id: key.contains("devices") ? device.enrollment.deviceId : item.id)
    let token = rule.audience == .device ? try await device.token() : company.owner
    let body = try await rule.body(device)
    for error in [StoreError.unavailable(code: 13), .damaged("role")] {
      harness.faults.fail(error)
      let reply = try await harness.send(method, path, token: token, json: body, type: rule.type)
      #expect(reply.status == 503)
      #expect(reply.problem == "unavailable")
      #expect(reply.headers[.retryAfter].flatMap { Int($0) } ?? 0 > 0)
    }
    harness.faults.fail(nil)
    let reply = try await harness.send(method, path, token: token, json: body, type: rule.type)
    #expect(reply.status == rule.success)
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
    #expect(try await harness.send(.get, "/v1/devices", token: other.owner).body == Array("[]".utf8))
    let own = try await harness.send(.get, "/v1/devices", token: company.auditor)
    #expect(String(decoding: own.body, as: UTF8.self).contains(device.enrollment.deviceId))
  }

  static func split(_ key: String, id: String) -> (method: HTTPRequest.Method, path: String) {
    let parts = key.split(separator: " ")
    return (HTTPRequest.Method(rawValue: String(parts[0]))!, String(parts[1]).replacing("{id}", with: id))
  }
}
