import CofferAPI
import Foundation
import Testing

@testable import CofferServer

/// What each page and each form of the console asks of its caller, written a second time and by hand.
enum ConsoleTable {
  typealias Fixture = AccessTable.Fixture

  struct Row: Sendable {
    /// Of `AccessTable.scopes`; nil is that it is the person's own.
    let scope: String?
    /// 303 to another page, or 200 with one.
    let success: Int
    var prepare: @Sendable (Fixture) async throws -> Prepared = { _ in Prepared() }
  }

  struct Prepared: Sendable {
    var id = ""
    var command = ""
    var fields: [(String, String)] = []
  }

  private static func page(
    _ scope: String?, _ make: @escaping @Sendable (Fixture) async throws -> String = { _ in "" }
  ) -> Row {
    Row(scope: scope, success: 200) { Prepared(id: try await make($0)) }
  }

  private static func form(_ scope: String?, showing success: Int = 303, _ fields: [(String, String)]) -> Row {
    Row(scope: scope, success: success) { _ in Prepared(fields: fields) }
  }

  /// A form about one thing, that `make` makes, in the version that the API shows at `path`.
  private static func one(
    _ scope: String, of path: String? = nil, sending fields: [(String, String)] = [],
    _ make: @escaping @Sendable (Fixture) async throws -> String
  ) -> Row {
    Row(scope: scope, success: 303) { fixture in
      let id = try await make(fixture)
      var fields = fields
      if let path { fields.append(("match", try await fixture.company.tag("\(path)/\(id)"))) }
      return Prepared(id: id, fields: fields)
    }
  }

  private static func matching(_ scope: String, _ path: String, _ fields: [(String, String)]) -> Row {
    Row(scope: scope, success: 303) {
      Prepared(fields: fields + [("match", try await $0.company.tag(path))])
    }
  }

  static let appFields = [
    ("name", "Acme Writer"), ("bundleId", "com.acme.writer"), ("teamId", "ACME"), ("extensions", "pdf"),
    ("actions", "openIn"),
  ]

  private static let app: @Sendable (Fixture) async throws -> String = {
    try await $0.company.make("/v1/apps", Company.app())
  }
  private static let device: @Sendable (Fixture) async throws -> String = { $0.device.enrollment.deviceId }
  private static let administrator: @Sendable (Fixture) async throws -> String = {
    try await Person($0.company, .editor).administrator.id
  }

  /// For whoever is signed in. What nobody has to be known for is not here.
  static let rows: [String: Row] = [
    "GET /console": page("policy:read"),
    "GET /console/events": page(nil),
    "POST /console/sign-out": form(nil, []),

    "GET /console/apps": page("policy:read"),
    "POST /console/apps": form("policy:write", appFields),
    "GET /console/apps/{id}": page("policy:read", app),
    "POST /console/apps/{id}/change": one("policy:write", of: "/v1/apps", sending: appFields, app),
    "POST /console/apps/{id}/approve": one("policy:write", of: "/v1/apps", sending: [("reason", "asked for")], app),
    "POST /console/apps/{id}/revoke": one("policy:write", of: "/v1/apps", app),
    "POST /console/apps/{id}/remove": one("policy:write", of: "/v1/apps", app),

    "GET /console/rules": page("policy:read"),
    "POST /console/rules": form("policy:write", [("id", "no-print"), ("effect", "forbid"), ("actions", "print")]),
    "POST /console/rules/{id}/remove": one("policy:write", of: "/v1/rules") { fixture in
      let id = "r-\(UUID().uuidString.lowercased())"
      return try await fixture.company.make("/v1/rules", #"{"id":"\#(id)","effect":"forbid","conditions":[]}"#)
    },

    "GET /console/devices": page("devices:read"),
    "GET /console/devices/{id}": page("devices:read", device),
    "GET /console/devices/{id}/wipe": page("devices:write", device),
    "POST /console/devices/{id}/wipe": Row(scope: "devices:write", success: 303) { fixture in
      let id = fixture.device.enrollment.deviceId
      return Prepared(id: id, fields: [("confirmation", String(id.prefix(8)))])
    },
    "POST /console/devices/{id}/order": one("devices:write", sending: [("kind", "lock")], device),
    "POST /console/devices/{id}/orders/{command}/cancel": Row(scope: "devices:write", success: 303) { fixture in
      let id = fixture.device.enrollment.deviceId
      return Prepared(
        id: id, command: try await fixture.company.make("/v1/devices/\(id)/commands", #"{"kind":"lock"}"#))
    },
    "POST /console/devices/{id}/remove": one("devices:write", device),

    "GET /console/enrolment": page("devices:read"),
    "POST /console/enrolment": form("devices:write", showing: 200, [("expiresIn", "3600")]),
    "POST /console/enrolment/{id}/revoke": one("devices:write") {
      try await $0.company.make("/v1/enrollments", "{}")
    },

    "GET /console/settings": page("policy:read"),
    "POST /console/settings/owner": matching("policy:write", "/v1/settings", [("ownerActions", "import")]),
    "POST /console/settings/grace": matching("policy:write", "/v1/grace", [("warnAfter", "1"), ("blockAfter", "2")]),
    "POST /console/settings/approvals": matching("accounts:write", "/v1/approval-settings", [("twoPeople", "on")]),

    "GET /console/audit": page("audit:read"),
    "POST /console/audit/export": form("audit:read", showing: 200, []),

    "GET /console/people": page("accounts:read"),
    "POST /console/people/invite": form(
      "accounts:write", showing: 200, [("email", "new@example.com"), ("role", "auditor")]),
    "POST /console/people/invitations/{id}/revoke": one("accounts:write") {
      try await $0.company.make("/v1/invitations", #"{"email":"new@example.com","role":"auditor"}"#)
    },
    "POST /console/people/{id}/role": one(
      "accounts:write", of: "/v1/administrators", sending: [("role", "auditor")], administrator),
    "POST /console/people/{id}/remove": one("accounts:write", of: "/v1/administrators", administrator),
    "POST /console/tokens": form(
      "accounts:write", showing: 200, [("name", "ci"), ("role", "auditor"), ("expiresIn", "604800")]),
    "POST /console/tokens/{id}/revoke": one("accounts:write") {
      try await $0.company.make("/v1/tokens", #"{"name":"ci","role":"auditor","expiresIn":3600}"#)
    },

    "GET /console/account": page(nil),
    "POST /console/account/password": form(
      nil,
      [("current", Person.password), ("password", "another good password"), ("again", "another good password")]),
    "POST /console/account/factor": form(nil, showing: 200, [("password", Person.password)]),
    "POST /console/account/factor/confirm": form(nil, showing: 401, [("code", "000000")]),
    "POST /console/account/factor/remove": form(nil, [("password", Person.password)]),
  ]

  /// For whoever comes: the entrance, and files that are the same for everybody.
  static let open: Set<String> = [
    "GET /", "GET /console/sign-in", "POST /console/sign-in", "GET /setup", "POST /setup", "POST /setup/account",
    "GET \(Asset.style.path.text)", "GET \(Asset.script.path.text)",
  ]
}
