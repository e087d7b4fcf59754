import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// The console's pages: what they carry, and what hostile names make of them.
@Suite struct ConsoleTests {
  static func encoded(_ fields: [(String, String)]) -> String {
    fields.map { name, value in
      "\(name)=\(value.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")"
    }
    .joined(separator: "&")
  }

  /// What every answer of the console carries, refusals and redirections too.
  static func expectSafe(_ reply: Reply) {
    func header(_ name: String) -> String? { HTTPField.Name(name).flatMap { reply.headers[$0] } }
    let policy = header("Content-Security-Policy") ?? ""
    for part in [
      "default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'", "base-uri 'none'",
      "frame-ancestors 'none'", "require-trusted-types-for 'script'",
    ] { #expect(policy.contains(part)) }
    #expect(!policy.contains("unsafe") && !policy.contains("*") && !policy.contains("http"))
    #expect(header("X-Frame-Options") == "DENY")
    #expect(header("X-Content-Type-Options") == "nosniff")
    #expect(header("Referrer-Policy") == "same-origin")
    #expect(header("Cross-Origin-Opener-Policy") == "same-origin")
    #expect(header("Permissions-Policy")?.contains("camera=()") == true)
    #expect(header("Cache-Control") == "no-store")
    let body = String(decoding: reply.body, as: UTF8.self)
    #expect(!body.contains(" style=") && !body.contains("<style") && !body.contains(" onclick="))
    // A script is a file of the server's own, and nothing stands in it.
    #expect(body.components(separatedBy: "<script").count == body.components(separatedBy: "\" defer></script>").count)
  }

  private static func get(_ person: Person, _ path: String) async throws -> String {
    let reply = try await person.company.harness.send(.get, path, headers: [.cookie: person.cookie])
    #expect(reply.status == 200, "\(path)")
    expectSafe(reply)
    return String(decoding: reply.body, as: UTF8.self)
  }

  static func post(_ person: Person, _ path: String, _ fields: [(String, String)]) async throws -> Reply {
    try await person.company.harness.send(
      .post, path, headers: [.cookie: person.cookie, .fetchSite: "same-origin"],
      json: encoded(fields + [("csrf", person.csrfToken)]), type: "application/x-www-form-urlencoded")
  }

  @Test func `text and values are escaped, and a component of an address stays one`() {
    let hostile = #"</p><script>alert('1')</script>&amp;""#
    let html = Tag.p(.id(hostile)) { hostile }.document
    let safe = "&lt;/p&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;&quot;"
    #expect(html == "<!doctype html>\n<p id=\"\(safe)\">\(safe)</p>")
    let link: Link = "/console/apps/\("../../x?a=b#c\"'<é")/y"
    #expect(link.text == "/console/apps/..%2F..%2Fx%3Fa%3Db%23c%22%27%3C%C3%A9/y")
  }

  @Test func `hostile names are names on every page`() async throws {
    let harness = try Harness()
    let hostile = #"<img src=x onerror=alert(1)>"'&<script>"#
    let company = try await harness.company("Evil \(hostile)")
    let person = try await Person(company, .owner, email: "a<script>\"'&b@example.com")
    let key = String(decoding: try JSONEncoder().encode(hostile), as: UTF8.self)
    let app = try await company.make(
      "/v1/apps", Company.app(more: #","reason":\#(key),"platform":\#(key)"#).replacing("\"Acme Editor\"", with: key))
    let device = try await harness.send(
      .post, "/v1/enroll",
      json: Company.enrollment(try await company.code().secret).replacing("\"linux\"", with: key))
    let id = try device.json(EnrollResponse.self).deviceId
    let enrolled = EnrolledDevice(company: company, key: SigningKey(), enrollment: try device.json())
    _ = enrolled
    _ = try await company.make(
      "/v1/tokens", #"{"name":\#(key),"role":"auditor","expiresIn":3600}"#)
    _ = try await company.make("/v1/invitations", #"{"email":"<b>@example.com","role":"auditor"}"#)
    _ = try await company.make("/v1/groups", #"{"id":"g","name":\#(key)}"#)
    _ = try await company.make("/v1/classifications", #"{"id":"c","name":\#(key)}"#)
    let scope = #""classifications":["c"],"groups":["g"],"apps":[{"bundleId":"com.acme.editor","teamId":"ACME"}]"#
    _ = try await company.make("/v1/rules", #"{"id":"r","effect":"forbid",\#(scope),"conditions":[]}"#)
    let draft = try await company.make("/v1/drafts", #"{"note":\#(key)}"#)
    let tag = try await company.tag("/v1/apps/\(app)")
    #expect(
      try await Self.post(person, "/console/apps/\(app)/approve", [("match", tag), ("reason", hostile)]).status == 303)
    let question = "app=\(app)&action=openIn&type=%3Cscript%3E&content=%3Cb%3E&version=%3Ci%3E&days=%22"
    var pages = [
      "/console", "/console/apps", "/console/apps/\(app)", "/console/rules", "/console/rules/r", "/console/new-rule",
      "/console/simulator?\(question)", "/console/simulator?\(question)&by=draft-\(draft)&at=%3Cb%3E&label=c",
      "/console/drafts", "/console/drafts/\(draft)", "/console/drafts/\(draft)/rule?rule=r", "/console/revisions",
      "/console/revisions/4", "/console/file-types", "/console/classifications", "/console/classifications/c",
      "/console/groups", "/console/groups/g", "/console/keys",
      "/console/devices", "/console/devices/\(id)", "/console/devices/\(id)/wipe", "/console/enrolment",
      "/console/settings", "/console/settings/devices", "/console/audit", "/console/people", "/console/account",
    ]
    let order = try await company.make("/v1/devices/\(id)/commands", #"{"kind":"lock"}"#)
    pages += ["orders", "orders/\(order)", "decisions", "log"].map { "/console/devices/\(id)/\($0)" }
    pages += ["settings", "file-type", "classification?label=c"].map { "/console/drafts/\(draft)/\($0)" }
    pages += ["decisions?outcome=%3Cb%3E&before=%22", "log?through=%3Cb%3E", "orders?before=%3Cb%3E"]
      .map { "/console/devices/\(id)/\($0)" }
    pages += ["/console/apps?done=%3Cscript%3E", "/console/audit?through=%3Cscript%3E", "/console/apps?after=%22%3E"]
    var isShown = false
    for path in pages {
      let page = try await Self.get(person, path)
      #expect(!page.contains("<img") && !page.contains("<script>") && !page.contains("<b>") && !page.contains("<i>"))
      isShown = isShown || page.contains("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;&lt;script&gt;")
    }
    #expect(isShown)
  }

  @Test func `what was typed comes back as it was typed, with what was wrong`() async throws {
    let harness = try Harness()
    let person = try await Person(try await harness.company())
    let hostile = #""><script>alert(1)</script>"#
    let reply = try await Self.post(
      person, "/console/apps",
      [("name", hostile), ("bundleId", hostile), ("teamId", "ACME"), ("extensions", hostile), ("actions", hostile)])
    #expect(reply.status == 422)
    Self.expectSafe(reply)
    let page = String(decoding: reply.body, as: UTF8.self)
    #expect(!page.contains("<script>"))
    #expect(page.contains("value=\"&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\""))
    #expect(page.contains("role=\"alert\"") && page.contains("aria-invalid=\"true\""))
    #expect(page.contains("<title>Not done: Apps"))
  }

  @Test func `all that nobody filled in is named at once, each at its field`() async throws {
    let harness = try Harness()
    let person = try await Person(try await harness.company())
    let fields = [("name", ""), ("bundleId", " "), ("teamId", "ACME"), ("extensions", ""), ("actions", "openIn")]
    let reply = try await Self.post(person, "/console/apps", fields)
    #expect(reply.status == 422)
    let page = String(decoding: reply.body, as: UTF8.self)
    for text in ["Name: is missing.", "Bundle id: is missing.", "File types: is missing."] {
      #expect(page.contains(text), "\(text)")
    }
    #expect(!page.contains("Team id: is missing"))
    #expect(page.components(separatedBy: "Not accepted: is missing.").count == 4)
    #expect(try await Self.post(person, "/console/groups", [("name", "Board"), ("id", "")]).status == 422)
  }

  @Test func `a password that was typed never comes back`() async throws {
    let harness = try Harness()
    let person = try await Person(try await harness.company())
    let fields = [("company", "Acme"), ("email", person.email), ("password", "a wrong pass word")]
    let reply = try await Self.post(person, "/console/sign-in", fields)
    #expect(reply.status == 401)
    let page = String(decoding: reply.body, as: UTF8.self)
    #expect(!page.contains("a wrong pass word") && page.contains(person.email))
  }

  @Test func `a form of an earlier version does nothing`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    let app = try await company.make("/v1/apps", Company.app())
    let path = "/console/apps/\(app)"
    let tag = try await company.tag("/v1/apps/\(app)")
    let changed = ConsoleTable.appFields + [("match", tag)]
    #expect(try await Self.post(person, "\(path)/change", changed).status == 303)
    let stale = try await Self.post(person, "\(path)/approve", [("match", tag)])
    #expect(stale.status == 412)
    #expect(String(decoding: stale.body, as: UTF8.self).contains("Somebody changed it meanwhile."))
    let without = try await Self.post(person, "\(path)/approve", [])
    #expect(without.status == 428)
    #expect(try await company.policy().apps.isEmpty)
  }

  @Test func `a wipe is ordered only for the device that was typed`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    let device = try await company.enroll().enrollment.deviceId
    for text in ["", "yes", String(device.prefix(7)), "\(device.prefix(8))0"] {
      let reply = try await Self.post(person, "/console/devices/\(device)/wipe", [("confirmation", text)])
      #expect(reply.status == 422)
    }
    #expect(try await Self.post(person, "/console/devices/\(device)/order", [("kind", "wipe")]).status == 422)
    let pending = {
      try await harness.store.read { try $0.pendingCommands(tenant: company.tenant.id, device: device, now: 0) }
    }
    #expect(try await pending().isEmpty)
    let fields = [("confirmation", String(device.prefix(8)))]
    #expect(try await Self.post(person, "/console/devices/\(device)/wipe", fields).status == 303)
    #expect(try await pending().map(\.command.kind) == [.wipe])
  }

  @Test func `a page that looks for news keeps no session from being idle`() async throws {
    let harness = try Harness()
    let person = try await Person(try await harness.company())
    let look: HTTPFields = [.cookie: person.cookie, .refresh: "1"]
    harness.server.watchers.hub.close()
    for _ in 0..<5 {
      harness.time.advance(300)
      #expect(try await harness.send(.get, "/console", headers: look).status == 200)
      // Nor one whose stream was cut, and which opens another.
      #expect(try await harness.send(.get, "/console/events", headers: [.cookie: person.cookie]).status == 503)
    }
    harness.time.advance(301)
    #expect(try await harness.send(.get, "/console", headers: look).status == 303)
  }

  @Test func `each company's pages hear of its own changes alone`() async throws {
    let harness = try Harness()
    let (company, other) = (try await harness.company(), try await harness.company("Other"))
    func mark(_ company: Company) -> Int64 { harness.server.watchers.mark(of: company.tenant.id) }
    var (own, foreign) = (mark(company), mark(other))
    func expectNews(_ what: String) {
      #expect(mark(company) > own && mark(other) == foreign, "\(what)")
      (own, foreign) = (mark(company), mark(other))
    }
    _ = try await company.make("/v1/apps", Company.app())
    expectNews("a change")
    let device = try await company.enroll()
    expectNews("a device that joined")
    let token = try await device.token()
    let report = try await harness.send(.put, "/v1/device/report", token: token, json: #"{"osVersion":"6.1"}"#)
    #expect(report.status == 204)
    expectNews("a report")
    #expect(try await harness.send(.get, "/v1/apps", token: company.owner).status == 200)
    #expect(mark(company) == own)
  }

  @Test func `the entrance takes no form of another site's`() async throws {
    let harness = try Harness()
    let person = try await Person(try await harness.company())
    let body = Self.encoded([("company", "Acme"), ("email", person.email), ("password", Person.password)])
    for headers: HTTPFields in [[.fetchSite: "cross-site"], [.origin: "http://evil.example"], [:]] {
      let reply = try await harness.send(
        .post, "/console/sign-in", headers: headers, json: body, type: "application/x-www-form-urlencoded")
      #expect(reply.status == 403 && reply.headers[.setCookie] == nil)
    }
    let reply = try await harness.send(
      .post, "/console/sign-in", headers: [.fetchSite: "same-origin"], json: body,
      type: "application/x-www-form-urlencoded")
    #expect(reply.status == 303 && reply.headers[.location] == "/console")
    #expect(reply.headers[.setCookie]?.hasSuffix("; Path=/; HttpOnly; SameSite=Strict") == true)
  }

  @Test func `files are the same for everybody and may be kept`() async throws {
    let harness = try Harness()
    for asset in [Asset.style, .script] {
      let reply = try await harness.send(.get, asset.path.text)
      #expect(reply.status == 200 && !reply.body.isEmpty)
      #expect(reply.headers[.cacheControl]?.contains("immutable") == true)
    }
    let script = String(decoding: PackageResources.console_js, as: UTF8.self)
    #expect(!script.contains("innerHTML") && !script.contains("eval(") && !script.contains("http:"))
    #expect(try await harness.send(.get, "/").headers[.location] == "/console")
  }

  @Test func `a code is drawn as the modules that libqrencode says`() throws {
    let picture = try #require(QRCode.picture(of: "COF1-ABC", label: "A <code>")).document
    // 21 modules and the border: the smallest there is.
    #expect(picture.contains("viewBox=\"0 0 29 29\"") && picture.contains("aria-label=\"A &lt;code&gt;\""))
    // The corner of the first finder pattern, and its white ring.
    #expect(picture.contains("M4 4h1v1h-1z") && !picture.contains("M5 5h1v1h-1z") && picture.contains("M6 6h1v1h-1z"))
    #expect(QRCode.picture(of: String(repeating: "x", count: 5000), label: "") == nil)
  }
}
