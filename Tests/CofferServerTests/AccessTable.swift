import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import Foundation
import HTTPTypes
import Hummingbird
import Testing

@testable import CofferServer

/// Who may call each route, written a second time and by hand: what the routes themselves say is held against it.
enum AccessTable {
  enum Audience: Sendable {
    case anyone
    /// Whoever has the scope of this name.
    case scope(String)
    case person
    /// A person whose role has the scope of this name.
    case personWith(String)
    case device
  }

  struct Rule: Sendable {
    let audience: Audience
    let success: Int
    /// Whether the scope alone is too little, because what is given or taken goes beyond it.
    var givesMore = false
    /// Makes what the request needs in `company`, and the request.
    var prepare: @Sendable (Fixture) async throws -> Prepared = { _ in Prepared() }
  }

  struct Prepared: Sendable {
    /// What stands for `{id}` and `{command}`.
    var id = ""
    var command = ""
    var body: String?
    var type = "application/json"
    var headers: HTTPFields = [:]
  }

  /// A company with whoever may call.
  struct Fixture: Sendable {
    let company: Company
    let person: Person
    let device: EnrolledDevice
  }

  static let scopes: [String: Set<String>] = [
    "owner": [
      "policy:read", "policy:write", "devices:read", "devices:write", "audit:read", "accounts:read", "accounts:write",
      "keys:write",
    ],
    "editor": ["policy:read", "policy:write", "devices:read", "devices:write", "audit:read"],
    "auditor": ["policy:read", "devices:read", "audit:read", "accounts:read"],
  ]

  private static func read(_ scope: String) -> Rule { Rule(audience: .scope(scope), success: 200) }

  /// A route of one thing that `make` makes.
  private static func one(
    _ scope: String, _ success: Int, matching path: String? = nil, body: String? = nil, givesMore: Bool = false,
    _ make: @escaping @Sendable (Fixture) async throws -> String
  ) -> Rule {
    Rule(audience: .scope(scope), success: success, givesMore: givesMore) { fixture in
      let id = try await make(fixture)
      var headers: HTTPFields = [:]
      if let path { headers[.ifMatch] = try await fixture.company.tag(path.replacing("{id}", with: id)) }
      return Prepared(id: id, body: body, headers: headers)
    }
  }

  private static func posting(_ scope: String, _ body: String, _ success: Int = 201) -> Rule {
    Rule(audience: .scope(scope), success: success) { _ in Prepared(body: body) }
  }

  private static func matching(_ scope: String, _ path: String, _ body: String? = nil) -> Rule {
    Rule(audience: .scope(scope), success: 200) { fixture in
      Prepared(body: body, headers: [.ifMatch: try await fixture.company.tag(path)])
    }
  }

  /// The five routes of what a company names itself.
  private static func resource(_ path: String, _ body: String, read: String, write: String) -> [String: Rule] {
    let make: @Sendable (Fixture) async throws -> String = { fixture in
      let reply = try await fixture.company.harness.send(.post, path, token: fixture.company.owner, json: body)
      #expect(reply.status == 201, "\(String(decoding: reply.body, as: UTF8.self))")
      return String(try #require(reply.headers[.location]).split(separator: "/").last ?? "")
    }
    let one = "\(path)/{id}"
    return [
      "GET \(path)": Self.read(read), "POST \(path)": posting(write, body), "GET \(one)": Self.one(read, 200, make),
      "PUT \(one)": Self.one(write, 200, matching: one, body: body, make),
      ["DELETE", one].joined(separator: " "): Self.one(write, 204, matching: one, make),
    ]
  }

  static let rules: [String: Rule] = [
    "GET /health": Rule(audience: .anyone, success: 200),
    "GET /ready": Rule(audience: .anyone, success: 200),
    "GET /v1/openapi.json": Rule(audience: .anyone, success: 200),
    // The operator's own secret, and nobody else's.
    "GET /metrics": Rule(audience: .anyone, success: 401),
    "POST /v1/setup": Rule(audience: .anyone, success: 404) { _ in
      Prepared(body: #"{"token":"coffer_invitation_0","password":"correct horse battery"}"#)
    },
    "POST /v1/session": Rule(audience: .anyone, success: 201) { fixture in
      let person = try await Person(fixture.company)
      return Prepared(
        body: #"{"company":"Acme","email":"\#(person.email)","password":"\#(Person.password)"}"#)
    },
    "POST /v1/enroll": Rule(audience: .anyone, success: 201) {
      Prepared(body: Company.enrollment(try await $0.company.code().secret))
    },
    "POST /v1/device/token": Rule(audience: .anyone, success: 200) {
      Prepared(
        body: EnrolledDevice.form(try $0.device.assertion()), type: "application/x-www-form-urlencoded")
    },
    "POST /v1/device/receipts": Rule(audience: .anyone, success: 400) { _ in Prepared(body: #"{"receipt":"a.b.c"}"#) },

    "GET /v1/session": Rule(audience: .person, success: 200),
    "DELETE /v1/session": Rule(audience: .person, success: 204),
    "PUT /v1/session/password": Rule(audience: .person, success: 204) { _ in
      Prepared(body: #"{"current":"\#(Person.password)","new":"another good password"}"#)
    },
    "POST /v1/session/second-factor": Rule(audience: .person, success: 200) { _ in
      Prepared(body: #"{"password":"\#(Person.password)"}"#)
    },
    "PUT /v1/session/second-factor": Rule(audience: .person, success: 401) { _ in Prepared(body: #"{"code":"000000"}"#)
    },
    "DELETE /v1/session/second-factor": Rule(audience: .person, success: 204) { _ in
      Prepared(body: #"{"password":"\#(Person.password)"}"#)
    },
    "POST /v1/keys/root-export": Rule(audience: .personWith("keys:write"), success: 200) { _ in
      Prepared(body: #"{"password":"\#(Person.password)","passphrase":"a phrase for the safe"}"#)
    },

    "GET /v1/administrators": read("accounts:read"),
    "GET /v1/administrators/{id}": one("accounts:read", 200, administrator),
    "PUT /v1/administrators/{id}": one(
      "accounts:write", 200, matching: "/v1/administrators/{id}", body: #"{"role":"auditor"}"#, givesMore: true,
      administrator),
    "DELETE /v1/administrators/{id}": one(
      "accounts:write", 204, matching: "/v1/administrators/{id}", givesMore: true, administrator),
    "GET /v1/invitations": read("accounts:read"),
    "POST /v1/invitations": Rule(audience: .scope("accounts:write"), success: 201, givesMore: true) { _ in
      Prepared(body: #"{"email":"new@example.com","role":"auditor"}"#)
    },
    "DELETE /v1/invitations/{id}": one("accounts:write", 204, givesMore: true) {
      try await $0.company.make("/v1/invitations", #"{"email":"new@example.com","role":"auditor"}"#)
    },
    "GET /v1/tokens": read("accounts:read"),
    "POST /v1/tokens": posting(
      "accounts:write", #"{"name":"ci","role":"owner","scopes":["accounts:write"],"expiresIn":3600}"#),
    "DELETE /v1/tokens/{id}": one("accounts:write", 204, givesMore: true) {
      try await $0.company.make("/v1/tokens", #"{"name":"ci","role":"auditor","expiresIn":3600}"#)
    },

    "GET /items": read("policy:read"),
    "POST /items": posting("policy:write", Company.item()),
    "GET /items/{id}": one("policy:read", 200) { try await $0.company.add().id },
    "PUT /items/{id}": one("policy:write", 200, body: Company.item("com.acme.other")) { try await $0.company.add().id },
    "DELETE /items/{id}": one("policy:write", 204) { try await $0.company.add().id },
    "GET /v1/apps": read("policy:read"),
    "POST /v1/apps": posting("policy:write", Company.app()),
    "GET /v1/apps/{id}": one("policy:read", 200, app),
    "PUT /v1/apps/{id}": one(
      "policy:write", 200, matching: "/v1/apps/{id}", body: Company.app("com.acme.other"), app),
    "DELETE /v1/apps/{id}": one("policy:write", 204, matching: "/v1/apps/{id}", app),
    "POST /v1/apps/{id}/approve": one("policy:write", 200, matching: "/v1/apps/{id}", body: "{}", app),
    "POST /v1/apps/{id}/revoke": one("policy:write", 200, matching: "/v1/apps/{id}", body: "{}", app),
    "GET /v1/approval-settings": read("policy:read"),
    "PUT /v1/approval-settings": matching("accounts:write", "/v1/approval-settings", #"{"twoPeople":true}"#),

    "GET /v1/settings": read("policy:read"),
    "PUT /v1/settings": posting("policy:write", #"{"ownerActions":["import"],"allowFilteredTier":true}"#, 200),
    "GET /v1/grace": read("policy:read"),
    "PUT /v1/grace": matching("policy:write", "/v1/grace", #"{"warnAfter":60,"blockAfter":120}"#),
    "GET /v1/policy": read("policy:read"),
    "POST /v1/policy:simulate": posting("policy:read", #"{"requests":[{"action":"mount"}]}"#, 200),
    "GET /v1/revisions": read("policy:read"),
    "GET /v1/revisions/{id}": one("policy:read", 200) { _ in "1" },
    "POST /v1/revisions/{id}/restore": one("policy:write", 200, matching: "/v1/policy") { _ in "1" },
    "GET /v1/drafts": read("policy:read"),
    "POST /v1/drafts": posting("policy:write", "{}"),
    "GET /v1/drafts/{id}": one("policy:read", 200, draft),
    "PUT /v1/drafts/{id}": one("policy:write", 200, matching: "/v1/drafts/{id}", body: #"{"note":"new"}"#, draft),
    "DELETE /v1/drafts/{id}": one("policy:write", 204, matching: "/v1/drafts/{id}", draft),
    "POST /v1/drafts/{id}/publish": one("policy:write", 200, matching: "/v1/drafts/{id}", draft),

    "GET /v1/keys": read("policy:read"),
    "POST /v1/keys/rotate": matching("keys:write", "/v1/keys"),
    "POST /v1/keys/delegations": matching("keys:write", "/v1/keys", #"{"use":"wipe"}"#),
    "GET /v1/audit": read("audit:read"),
    "GET /v1/audit/checkpoint": read("audit:read"),
    "GET /v1/audit/export": read("audit:read"),

    "GET /v1/devices": read("devices:read"),
    "GET /v1/devices/{id}": one("devices:read", 200, device),
    "PUT /v1/devices/{id}": one(
      "devices:write", 200, matching: "/v1/devices/{id}", body: #"{"groups":[]}"#, device),
    "DELETE /v1/devices/{id}": one("devices:write", 204, device),
    "GET /v1/devices/{id}/commands": one("devices:read", 200, device),
    "POST /v1/devices/{id}/commands": one("devices:write", 201, body: #"{"kind":"wipe"}"#, device),
    "DELETE /v1/devices/{id}/commands/{command}": Rule(audience: .scope("devices:write"), success: 204) { fixture in
      let id = fixture.device.enrollment.deviceId
      let command = try await fixture.company.make("/v1/devices/\(id)/commands", #"{"kind":"lock"}"#)
      return Prepared(id: id, command: command)
    },
    "GET /v1/devices/{id}/decisions": one("devices:read", 200, device),
    // There is one once the device has uploaded it.
    "GET /v1/managed-settings": read("policy:read"),
    "PUT /v1/managed-settings": matching("policy:write", "/v1/managed-settings", #"{"lockAfterMinutes":5}"#),
    "GET /v1/devices/{id}/log": one("devices:read", 404, device),
    "GET /v1/enrollments": read("devices:read"),
    "POST /v1/enrollments": posting("devices:write", "{}"),
    "DELETE /v1/enrollments/{id}": one("devices:write", 204) { try await $0.company.make("/v1/enrollments", "{}") },

    "GET /v1/device/policy": Rule(audience: .device, success: 200),
    "POST /v1/device/status": Rule(audience: .device, success: 200) { _ in
      Prepared(body: #"{"nonce":"\#(String(repeating: "A", count: 43))"}"#)
    },
    "GET /v1/device/events": Rule(audience: .device, success: 200),
    "GET /v1/device/commands": Rule(audience: .device, success: 200),
    "PUT /v1/device/report": Rule(audience: .device, success: 204) { _ in Prepared(body: #"{"osVersion":"6.1"}"#) },
    "PUT /v1/device/log": Rule(audience: .device, success: 204) { _ in Prepared(body: #"{"lines":["a"]}"#) },
    "POST /v1/device/decisions": Rule(audience: .device, success: 200) { _ in
      Prepared(body: #"{"entries":[{"number":1,"entry":"{}"}]}"#)
    },
  ]
  .merging(
    resource("/v1/rules", #"{"id":"r","effect":"forbid","conditions":[]}"#, read: "policy:read", write: "policy:write")
  ) { first, _ in first }
  .merging(
    resource("/v1/classifications", #"{"id":"secret","name":"Secret"}"#, read: "policy:read", write: "policy:write")
  ) { first, _ in first }
  .merging(
    resource(
      "/v1/file-types", #"{"extension":"dwg","mediaTypes":["image/vnd.dwg"]}"#, read: "policy:read",
      write: "policy:write")
  ) { first, _ in first }
  .merging(
    resource("/v1/groups", #"{"id":"sales","name":"Sales"}"#, read: "devices:read", write: "devices:write")
  ) { first, _ in first }

  private static let administrator: @Sendable (Fixture) async throws -> String = {
    try await Person($0.company, .editor).administrator.id
  }
  private static let app: @Sendable (Fixture) async throws -> String = {
    try await $0.company.make("/v1/apps", Company.app())
  }
  private static let draft: @Sendable (Fixture) async throws -> String = {
    try await $0.company.make("/v1/drafts", "{}")
  }
  private static let device: @Sendable (Fixture) async throws -> String = { $0.device.enrollment.deviceId }
}
