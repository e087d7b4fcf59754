import CofferAPI
import CofferCrypto
import Foundation
import HTTPTypes
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

  /// A name that no other company has.
  private static func name() -> String { "n-\(UUID().uuidString.lowercased().prefix(20))" }

  /// Makes something that is called so, and returns its name.
  private static func make(_ fixture: Fixture, _ path: String, _ json: (String) -> String) async throws -> String {
    let name = name()
    let reply = try await fixture.company.harness.send(.post, path, token: fixture.company.owner, json: json(name))
    #expect(reply.status == 201, "\(String(decoding: reply.body, as: UTF8.self))")
    return name
  }

  private static let rule: @Sendable (Fixture) async throws -> String = {
    try await make($0, "/v1/rules") { #"{"id":"\#($0)","effect":"forbid","conditions":[]}"# }
  }
  private static let fileType: @Sendable (Fixture) async throws -> String = {
    try await make($0, "/v1/file-types") { #"{"extension":"\#($0)","mediaTypes":["image/vnd.dwg"]}"# }
  }
  private static let classification: @Sendable (Fixture) async throws -> String = {
    try await make($0, "/v1/classifications") { #"{"id":"\#($0)","name":"Secret"}"# }
  }
  private static let group: @Sendable (Fixture) async throws -> String = {
    try await make($0, "/v1/groups") { #"{"id":"\#($0)","name":"Board"}"# }
  }
  private static let draft: @Sendable (Fixture) async throws -> String = {
    let rules = #"[{"id":"in-draft","effect":"forbid","conditions":[]}]"#
    let content = """
      {"rules":\(rules),"classifications":[{"id":"in-draft","name":"In the draft"}],
      "fileTypes":[{"extension":"igs","mediaTypes":["model/iges"]}],
      "settings":{"ownerActions":[],"allowFilteredTier":false},"grace":{"warnAfter":60,"blockAfter":120}}
      """
    return try await $0.company.make("/v1/drafts", #"{"content":\#(content)}"#)
  }

  private static let grace = [
    ("warnAfter", "1"), ("warnAfterUnit", "hours"), ("blockAfter", "2"), ("blockAfterUnit", "days"),
  ]

  private static func member(isIn: Bool) -> Row {
    Row(scope: "devices:write", success: 303) { fixture in
      let (id, device) = (try await group(fixture), fixture.device.enrollment.deviceId)
      if isIn {
        let reply = try await fixture.company.harness.send(
          .put, "/v1/devices/\(device)", token: fixture.company.owner,
          headers: [.ifMatch: try await fixture.company.tag("/v1/devices/\(device)")], json: #"{"groups":["\#(id)"]}"#)
        #expect(reply.status == 200)
      }
      return Prepared(id: id, fields: [("device", device)])
    }
  }

  private static let escrowKey =
    "coffer-escrow-public-key-1 \(HybridKey().publicKey.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())"

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
    "GET /console/new-rule": page("policy:write"),
    "GET /console/rules/{id}": page("policy:read", rule),
    "POST /console/rules/{id}/change": Row(scope: "policy:write", success: 303) { fixture in
      let id = try await rule(fixture)
      let tag = try await fixture.company.tag("/v1/rules/\(id)")
      return Prepared(
        id: id, fields: [("id", id), ("effect", "forbid"), ("actions", "print"), ("osBelow0", "17.4"), ("match", tag)])
    },
    "POST /console/rules/{id}/remove": one("policy:write", of: "/v1/rules", rule),
    "GET /console/simulator": page("policy:read"),

    "GET /console/drafts": page("policy:read"),
    "POST /console/drafts": form("policy:write", [("note", "for March")]),
    "GET /console/drafts/{id}": page("policy:read", draft),
    "POST /console/drafts/{id}/note": one("policy:write", of: "/v1/drafts", sending: [("note", "for April")], draft),
    "POST /console/drafts/{id}/publish": one("policy:write", of: "/v1/drafts", draft),
    "POST /console/drafts/{id}/renew": one("policy:write", draft),
    "POST /console/drafts/{id}/discard": one("policy:write", of: "/v1/drafts", draft),
    "GET /console/drafts/{id}/rule": page("policy:write", draft),
    "POST /console/drafts/{id}/rule": one(
      "policy:write", of: "/v1/drafts", sending: [("id", "no-print"), ("effect", "forbid")], draft),
    "POST /console/drafts/{id}/rule/remove": one(
      "policy:write", of: "/v1/drafts", sending: [("rule", "in-draft")], draft),
    "GET /console/drafts/{id}/file-type": page("policy:write", draft),
    "POST /console/drafts/{id}/file-type": one(
      "policy:write", of: "/v1/drafts", sending: [("extension", "dwg"), ("mediaTypes", "image/vnd.dwg")], draft),
    "POST /console/drafts/{id}/file-type/remove": one(
      "policy:write", of: "/v1/drafts", sending: [("type", "igs")], draft),
    "GET /console/drafts/{id}/classification": page("policy:write", draft),
    "POST /console/drafts/{id}/classification": one(
      "policy:write", of: "/v1/drafts", sending: [("id", "secret"), ("name", "Secret")], draft),
    "POST /console/drafts/{id}/classification/remove": one(
      "policy:write", of: "/v1/drafts", sending: [("label", "in-draft")], draft),
    "GET /console/drafts/{id}/settings": page("policy:write", draft),
    "POST /console/drafts/{id}/settings/owner": one(
      "policy:write", of: "/v1/drafts", sending: [("ownerActions", "import")], draft),
    "POST /console/drafts/{id}/settings/grace": one("policy:write", of: "/v1/drafts", sending: grace, draft),
    "POST /console/drafts/{id}/settings/managed": one(
      "policy:write", of: "/v1/drafts", sending: [("lockAfterMinutes", "5")], draft),
    "GET /console/revisions": page("policy:read"),
    "GET /console/revisions/{id}": page("policy:read") { _ in "1" },
    "POST /console/revisions/{id}/restore": Row(scope: "policy:write", success: 303) {
      Prepared(id: "1", fields: [("match", try await $0.company.tag("/v1/policy"))])
    },

    "GET /console/file-types": page("policy:read"),
    "POST /console/file-types": form(
      "policy:write", [("extension", "dwg"), ("mediaTypes", "image/vnd.dwg")]),
    "GET /console/file-types/{id}": page("policy:read", fileType),
    "POST /console/file-types/{id}/change": Row(scope: "policy:write", success: 303) { fixture in
      let id = try await fileType(fixture)
      let tag = try await fixture.company.tag("/v1/file-types/\(id)")
      return Prepared(id: id, fields: [("extension", id), ("mediaTypes", "image/vnd.dwg image/x-dwg"), ("match", tag)])
    },
    "POST /console/file-types/{id}/remove": one("policy:write", of: "/v1/file-types", fileType),
    "GET /console/classifications": page("policy:read"),
    "POST /console/classifications": form("policy:write", [("id", "secret"), ("name", "Secret")]),
    "GET /console/classifications/{id}": page("policy:read", classification),
    "POST /console/classifications/{id}/change": one(
      "policy:write", of: "/v1/classifications", sending: [("name", "Very secret")], classification),
    "POST /console/classifications/{id}/remove": one("policy:write", of: "/v1/classifications", classification),

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
    "GET /console/devices/{id}/orders": page("devices:read", device),
    "GET /console/devices/{id}/orders/{command}": Row(scope: "devices:read", success: 200) { fixture in
      let id = fixture.device.enrollment.deviceId
      return Prepared(
        id: id, command: try await fixture.company.make("/v1/devices/\(id)/commands", #"{"kind":"lock"}"#))
    },
    "GET /console/devices/{id}/decisions": page("devices:read", device),
    "GET /console/devices/{id}/log": page("devices:read", device),
    "GET /console/devices/{id}/log/download": page("devices:read") { fixture in
      let log = try await fixture.company.harness.send(
        .put, "/v1/device/log", token: try await fixture.device.token(), json: #"{"lines":["one"]}"#)
      #expect(log.status == 204)
      return fixture.device.enrollment.deviceId
    },
    "POST /console/devices/{id}/remove": one("devices:write", device),
    "POST /console/devices/{id}/groups": one("devices:write", of: "/v1/devices", sending: [], device),

    "GET /console/groups": page("devices:read"),
    "POST /console/groups": form("devices:write", [("id", "board"), ("name", "Board")]),
    "GET /console/groups/{id}": page("devices:read", group),
    "POST /console/groups/{id}/change": one(
      "devices:write", of: "/v1/groups", sending: [("name", "The board")], group),
    "POST /console/groups/{id}/remove": one("devices:write", of: "/v1/groups", group),
    "POST /console/groups/{id}/put": member(isIn: false),
    "POST /console/groups/{id}/take": member(isIn: true),

    "GET /console/enrolment": page("devices:read"),
    "POST /console/enrolment": form("devices:write", showing: 200, [("expiresIn", "3600")]),
    "POST /console/enrolment/{id}/revoke": one("devices:write") {
      try await $0.company.make("/v1/enrollments", "{}")
    },

    "GET /console/settings": page("policy:read"),
    "POST /console/settings/owner": matching("policy:write", "/v1/settings", [("ownerActions", "import")]),
    "POST /console/settings/grace": matching("policy:write", "/v1/grace", grace),
    "POST /console/settings/managed": matching(
      "policy:write", "/v1/managed-settings", [("lockAfterMinutes", "5"), ("logLevel", "debug")]),
    "GET /console/settings/devices": page("devices:read"),
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

    "GET /console/keys": page("policy:read"),
    "POST /console/keys/rotate": matching("keys:write", "/v1/keys", []),
    "POST /console/keys/wipe": matching("keys:write", "/v1/keys", []),
    "POST /console/keys/escrow": matching("keys:write", "/v1/keys", [("key", escrowKey)]),
    "POST /console/keys/export": form(
      "keys:write", showing: 200,
      [("password", Person.password), ("passphrase", "a phrase for the safe"), ("again", "a phrase for the safe")]),

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
