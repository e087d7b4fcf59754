import CofferAPI
import CofferCrypto
import CofferServerSQLite
import CofferSystem
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// Signing in, staying so, and what others try.
@Suite struct SessionTests {
  struct View: Decodable {
    let csrfToken: String
    let expiresAt: Int64
    let role: String
  }

  static func body(
    _ email: String, _ password: String = Person.password, company: String = "Acme", code: String? = nil
  ) -> String {
    let code = code.map { #","code":"\#($0)""# } ?? ""
    return #"{"company":"\#(company)","email":"\#(email)","password":"\#(password)"\#(code)}"#
  }

  @Test func `a person signs in, and the cookie is for this origin's pages alone`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company, .editor, email: "ed@example.com")
    let reply = try await harness.send(.post, "/v1/session", json: Self.body("ED@example.com"))
    #expect(reply.status == 201)
    let view = try reply.json(View.self)
    #expect(view.role == "editor")
    #expect(view.expiresAt == harness.time.seconds + Session.lifetime)
    let cookie = try #require(reply.headers[.setCookie])
    #expect(cookie.hasSuffix("; Path=/; HttpOnly; SameSite=Strict"))
    let pair = String(cookie.prefix { $0 != ";" })
    #expect(try await harness.send(.get, "/items", headers: [.cookie: pair]).status == 200)
    // The store has only a hash of it.
    let secret = String(pair.dropFirst("coffer=".count))
    #expect(SecretsTests.contain(Array(secret.utf8), try SecretsTests.files(harness)).isEmpty)
    #expect(try await company.auditEntries().last?.action == "session.started")
    #expect(try await company.auditEntries().last?.actor == "administrator:\(person.administrator.id)")
  }

  @Test func `over TLS the cookie is bound to host and TLS`() {
    let cookie = SessionCookie(isSecure: true).setting(BearerToken(.session))
    #expect(cookie.hasPrefix("__Host-coffer=coffer_session_"))
    #expect(cookie.hasSuffix("; Path=/; HttpOnly; SameSite=Strict; Secure"))
    let plain: HTTPFields = [.cookie: "coffer=\(BearerToken(.session).text)"]
    #expect(SessionCookie(isSecure: true).secret(in: plain) == nil)
    let twice: HTTPFields = [.cookie: "coffer=coffer_session_a; coffer=coffer_session_b"]
    #expect(SessionCookie(isSecure: false).secret(in: twice) == nil)
    #expect(SessionCookie(isSecure: false).secret(in: [.cookie: "a=b; coffer=coffer_session_a"]) == "coffer_session_a")
  }

  @Test func `whatever is wrong, the answer and the work are the same`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    let second = try await Person(company)
    _ = try await Self.addSecondFactor(second)
    var replies: [Reply] = []
    for body in [
      Self.body(person.email, "wrong horse battery"), Self.body("nobody@example.com"),
      Self.body(person.email, company: "Nobody"), Self.body("", ""), Self.body(second.email),
      Self.body(second.email, code: "000000"),
    ] {
      replies.append(try await harness.send(.post, "/v1/session", json: body))
    }
    for reply in replies {
      #expect(reply.status == 401)
      #expect(reply.problem == "sign-in-refused")
      #expect(reply.body == replies[0].body && reply.headers == replies[0].headers)
    }
  }

  /// Gives the person a second factor by the API and returns what makes its codes.
  static func addSecondFactor(_ person: Person) async throws -> OneTimeCode {
    struct Made: Decodable {
      let secret: String
      let uri: String
    }
    let made = try await person.send(.post, "/v1/session/second-factor", json: #"{"password":"\#(Person.password)"}"#)
    #expect(made.status == 200)
    let view = try made.json(Made.self)
    #expect(view.uri.hasPrefix("otpauth://totp/Coffer") && view.uri.contains("secret=\(view.secret)&"))
    let bytes = try #require(Base32.decode(Array(view.secret.lowercased().utf8)))
    let code = try OneTimeCode(secret: bytes.withUnsafeBytes { SecretBytes(copying: $0) })
    let text = code.code(step: OneTimeCode.step(at: person.company.harness.time.seconds))
    #expect(try await person.send(.put, "/v1/session/second-factor", json: #"{"code":"\#(text)"}"#).status == 204)
    return code
  }

  @Test func `a second factor's code works once, and no earlier one after it`() async throws {
    let harness = try Harness()
    let person = try await Person(try await harness.company())
    let code = try await Self.addSecondFactor(person)
    func signIn(_ step: Int64) async throws -> Int {
      let text = code.code(step: OneTimeCode.step(at: harness.time.seconds) + step)
      return try await harness.send(.post, "/v1/session", json: Self.body(person.email, code: text)).status
    }
    // The one that confirmed it was used.
    #expect(try await signIn(0) == 401)
    #expect(try await signIn(1) == 201)
    #expect(try await signIn(1) == 401)
    harness.time.advance(30)
    #expect(try await signIn(0) == 401)
    #expect(try await signIn(-1) == 401)
    harness.time.advance(60)
    #expect(try await signIn(-2) == 401)
    #expect(try await signIn(2) == 401)
    #expect(try await signIn(0) == 201)
    // The secret is not in any file as it is.
    let removed = try await person.send(
      .delete, "/v1/session/second-factor", json: #"{"password":"\#(Person.password)"}"#)
    #expect(removed.status == 204)
    #expect(try await harness.send(.post, "/v1/session", json: Self.body(person.email)).status == 201)
  }

  @Test func `of two who use one code at once one gets in`() async throws {
    let harness = try Harness()
    let person = try await Person(try await harness.company())
    let code = try await Self.addSecondFactor(person)
    let text = code.code(step: OneTimeCode.step(at: harness.time.seconds) + 1)
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<4 {
        group.addTask {
          try await harness.send(.post, "/v1/session", json: Self.body(person.email, code: text)).status
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses.sorted() == [201, 401, 401, 401])
  }

  @Test func `a session ends by itself, unused or used, and when its person signs out`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (idle, busy, leaving) = (try await Person(company), try await Person(company), try await Person(company))
    harness.time.advance(Session.idleTime - 1)
    for person in [idle, busy] { #expect(try await person.send(.get, "/v1/session").status == 200) }
    #expect(try await leaving.send(.delete, "/v1/session").status == 204)
    #expect(try await leaving.send(.get, "/v1/session").status == 401)
    harness.time.advance(Session.idleTime - 1)
    #expect(try await busy.send(.get, "/v1/session").status == 200)
    harness.time.advance(1)
    #expect(try await idle.send(.get, "/v1/session").status == 401)
    for _ in 0..<30 {
      harness.time.advance(Session.idleTime - 60)
      _ = try await busy.send(.get, "/v1/session")
    }
    #expect(try await busy.send(.get, "/v1/session").status == 401)
  }

  @Test func `a clock that was set back ends sessions of the future`() {
    let session = Session(id: "s", tenant: "t", administrator: "a", createdAt: 1000, lastSeenAt: 1000)
    #expect(session.isValid(at: 1000))
    #expect(!session.isValid(at: 999))
  }

  @Test func `a new password ends all of the person's sessions`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (person, other) = (try await Person(company), try await Person(company))
    let second = try await harness.send(.post, "/v1/session", json: Self.body(person.email))
    let pair = String(try #require(second.headers[.setCookie]).prefix { $0 != ";" })
    let new = "a quite new password"
    func change(_ current: String, _ new: String) async throws -> Int {
      try await person.send(
        .put, "/v1/session/password", json: #"{"current":"\#(current)","new":"\#(new)"}"#
      ).status
    }
    #expect(try await change("wrong horse battery", new) == 401)
    #expect(try await change(Person.password, "short") == 422)
    #expect(try await change(Person.password, new) == 204)
    #expect(try await person.send(.get, "/v1/session").status == 401)
    #expect(try await harness.send(.get, "/v1/session", headers: [.cookie: pair]).status == 401)
    #expect(try await other.send(.get, "/v1/session").status == 200)
    #expect(try await harness.send(.post, "/v1/session", json: Self.body(person.email)).status == 401)
    #expect(try await harness.send(.post, "/v1/session", json: Self.body(person.email, new)).status == 201)
  }

  @Test func `a change by cookie comes from this origin's page, with the session's token`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (person, other) = (try await Person(company), try await Person(company))
    func add(_ headers: HTTPFields) async throws -> Int {
      try await harness.send(.post, "/v1/enrollments", headers: headers, json: "{}").status
    }
    #expect(try await add(person.headers) == 201)
    let cookie = HTTPField(name: .cookie, value: person.cookie)
    let token = HTTPField(name: .csrfToken, value: person.csrfToken)
    let site = HTTPField(name: .fetchSite, value: "same-origin")
    let origin = HTTPField(name: .origin, value: "http://localhost")
    #expect(try await add(HTTPFields([cookie, token, origin])) == 201)
    #expect(try await add(HTTPFields([cookie, token, site, origin])) == 201)
    let refused: [[HTTPField]] = [
      [cookie], [cookie, token], [cookie, site], [cookie, origin],
      [cookie, site, HTTPField(name: .csrfToken, value: other.csrfToken)],
      [cookie, site, HTTPField(name: .csrfToken, value: "")], [cookie, site, token, token],
      [cookie, token, HTTPField(name: .fetchSite, value: "cross-site")],
      [cookie, token, HTTPField(name: .fetchSite, value: "same-site")],
      [cookie, token, HTTPField(name: .fetchSite, value: "none")],
      [cookie, token, HTTPField(name: .origin, value: "http://evil.example")],
      [cookie, token, HTTPField(name: .origin, value: "https://localhost")],
      [cookie, token, HTTPField(name: .origin, value: "http://localhost:81")],
      [cookie, token, HTTPField(name: .origin, value: "null")],
      [cookie, token, site, HTTPField(name: .origin, value: "http://evil.example")],
    ]
    for headers in refused {
      let reply = try await harness.send(.post, "/v1/enrollments", headers: HTTPFields(headers), json: "{}")
      #expect(reply.status == 403, "\(headers)")
      #expect(reply.problem == "cross-site")
    }
    // Nobody can be signed in by another site's page either.
    let body = Self.body(person.email)
    let forced = try await harness.send(
      .post, "/v1/session", headers: [.fetchSite: "cross-site"], json: body)
    #expect(forced.status == 403)
  }

  @Test func `guessing is slowed down by account and by address, known or not`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    for email in [person.email, "nobody@example.com"] {
      for _ in 0..<SignInLimiter.attemptsForAccount {
        #expect(
          try await harness.send(.post, "/v1/session", json: Self.body(email, "wrong horse battery")).status == 401)
      }
      let reply = try await harness.send(.post, "/v1/session", json: Self.body(email))
      #expect(reply.status == 429)
      #expect(reply.headers[.retryAfter] == "\(SignInLimiter.window)")
    }
    harness.time.advance(SignInLimiter.window)
    #expect(try await harness.send(.post, "/v1/session", json: Self.body(person.email)).status == 201)
  }

  @Test func `the limiter counts what is under way, gives back, and stays small`() {
    let limiter = SignInLimiter()
    for index in 0..<SignInLimiter.attemptsFromAddress {
      #expect(limiter.begin(account: "a\(index)", address: "192.0.2.1", now: 100) == nil)
    }
    #expect(limiter.begin(account: "new", address: "192.0.2.1", now: 100) == SignInLimiter.window)
    #expect(limiter.begin(account: "new", address: "192.0.2.2", now: 100) == nil)
    limiter.succeeded(account: "a0", address: "192.0.2.1")
    #expect(limiter.begin(account: "a0", address: "192.0.2.1", now: 100) == nil)
    // One network of IPv6 is one address.
    for index in 0..<SignInLimiter.attemptsFromAddress {
      #expect(limiter.begin(account: nil, address: "2001:db8:1:2::\(index)", now: 100) == nil)
    }
    #expect(limiter.begin(account: nil, address: "2001:db8:1:2:9::", now: 100) != nil)
    #expect(limiter.begin(account: nil, address: "2001:db8:1:3::1", now: 100) == nil)
    for index in 0..<3 * SignInLimiter.capacity {
      _ = limiter.begin(account: "flood\(index)", address: "198.51.100.\(index)", now: 200)
    }
    #expect(limiter.entryCount <= 2 * SignInLimiter.capacity)
  }
}
