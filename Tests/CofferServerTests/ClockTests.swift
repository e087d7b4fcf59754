import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import CofferSystem
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// The machine's clock, set forwards and backwards while the server runs.
@Suite struct ClockTests {
  private static let year: Int64 = 366 * 86_400

  private static func policy(_ device: EnrolledDevice) async throws -> PolicyResponse {
    try await device.company.harness.send(.get, "/v1/device/policy", token: try await device.token()).json()
  }

  @Test(arguments: [3_600, year])
  func `what was used once stays used when the clock was ahead and is put right`(jump: Int64) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let code = try await company.code().secret
    #expect(try await harness.send(.post, "/v1/enroll", json: Company.enrollment(code)).status == 201)
    let seen = try device.assertion()
    #expect(try await device.requestToken(seen).status == 200)
    harness.time.set(by: jump)
    // Whatever is forgotten by time is forgotten now.
    #expect(try await device.requestToken(try device.assertion()).status == 200)
    #expect(try await device.requestToken(seen).status == 400)
    harness.time.set(by: -jump)
    #expect(try await device.requestToken(seen).status == 400)
    #expect(try await harness.send(.post, "/v1/enroll", json: Company.enrollment(code)).status == 404)
    // And a new one is taken as ever.
    #expect(try await device.requestToken(try device.assertion { $0.exp += 1 }).status == 200)
  }

  @Test func `a code of the authenticator that was used, or is older, opens nothing by a clock that is set back`()
    async throws
  {
    let harness = try Harness()
    let person = try await Person(try await harness.company())
    let code = try await SessionTests.addSecondFactor(person)
    harness.time.advance(OneTimeCode.step)
    func signIn(_ step: Int64) async throws -> Int {
      let body = SessionTests.body(person.email, code: code.code(step: step))
      return try await harness.send(.post, "/v1/session", json: body).status
    }
    let step = OneTimeCode.step(at: harness.time.seconds)
    #expect(try await signIn(step) == 201)
    for back in [OneTimeCode.step, 10 * OneTimeCode.step, Self.year] {
      harness.time.set(by: -back)
      #expect(try await signIn(step) == 401)
      #expect(try await signIn(OneTimeCode.step(at: harness.time.seconds)) == 401)
      harness.time.set(by: back)
    }
  }

  @Test(arguments: [year, -year, 3_600, -3_600])
  func `setting the clock gives nobody more attempts`(jump: Int64) async throws {
    let harness = try Harness()
    let person = try await Person(try await harness.company())
    let wrong = SessionTests.body(person.email, "wrong horse battery")
    for _ in 0..<SignInLimiter.attemptsForAccount {
      #expect(try await harness.send(.post, "/v1/session", json: wrong).status == 401)
    }
    for by in [jump, -jump] {
      harness.time.set(by: by)
      let reply = try await harness.send(.post, "/v1/session", json: wrong)
      #expect(reply.status == 429 && reply.headers[.retryAfter] == "\(SignInLimiter.window)")
    }
    harness.time.advance(SignInLimiter.window)
    #expect(try await harness.send(.post, "/v1/session", json: SessionTests.body(person.email)).status == 201)
  }

  @Test(arguments: [3_600, year])
  func `what was made by a clock that was ahead holds no longer than it was meant to`(jump: Int64) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let early = company.owner
    harness.time.set(by: jump)
    let owner = try await harness.administration.createToken(tenant: company.tenant.id, role: .owner).secret.text
    let person = try await Person(company)
    let code = try await company.code().secret
    let deviceToken = try await device.token()
    struct Link: Decodable { let link: String }
    let invited = try await harness.send(
      .post, "/v1/invitations", token: owner, json: #"{"email":"a@example.com","role":"owner"}"#)
    #expect(invited.status == 201)
    let secret = try #require(try invited.json(Link.self).link.split(separator: "#").last)
    func statuses() async throws -> [Int] {
      let byToken = try await harness.send(.get, "/items", token: owner)
      let bySession = try await person.send(.get, "/items")
      let byDevice = try await harness.send(.get, "/v1/device/policy", token: deviceToken)
      return [byToken.status, bySession.status, byDevice.status]
    }
    #expect(try await statuses() == [200, 200, 200])
    harness.time.set(by: -jump)
    #expect(try await statuses() == [401, 401, 401])
    #expect(try await harness.send(.post, "/v1/enroll", json: Company.enrollment(code)).status == 404)
    let setUp = #"{"token":"\#(secret)","password":"a password of mine"}"#
    #expect(try await harness.send(.post, "/v1/setup", json: setUp).status == 404)
    // What was made before holds as before.
    #expect(try await harness.send(.get, "/items", token: early).status == 200)
    // Whoever signs in ends the sessions that would begin to hold one day.
    #expect(
      try await harness.send(.post, "/v1/session", json: SessionTests.body(person.email)).status == 201)
    harness.time.set(by: jump)
    #expect(try await person.send(.get, "/items").status == 401)
  }

  @Test func `what is over while the clock is ahead lets nobody in, and an approval that ended stays ended`()
    async throws
  {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    let device = try await company.enroll()
    let (token, code) = (try await device.token(), try await company.code().secret)
    let end = harness.time.seconds + 3_600
    let id = try await company.make("/v1/apps", Company.app(more: #","expiresAt":\#(end)"#))
    let approved = try await harness.send(
      .post, "/v1/apps/\(id)/approve", token: company.owner,
      headers: [.ifMatch: try await company.tag("/v1/apps/\(id)")], json: "{}")
    #expect(approved.status == 200)
    #expect(try await company.policy().apps.count == 1)
    harness.time.set(by: Self.year)
    for (path, token) in [("/items", company.owner), ("/v1/device/policy", token)] {
      #expect(try await harness.send(.get, path, token: token).status == 401)
    }
    #expect(try await person.send(.get, "/items").status == 401)
    #expect(try await harness.send(.post, "/v1/enroll", json: Company.enrollment(code)).status == 404)
    await harness.server.endApprovals()
    #expect(try await company.policy().apps.isEmpty)
    harness.time.set(by: -Self.year)
    await harness.server.endApprovals()
    #expect(try await harness.send(.get, "/items", token: company.owner).body == Array("[]".utf8))
    #expect(try await company.policy().apps.isEmpty)
  }

  @Test func `a policy that was signed by a clock that was ahead is signed anew, and no device believes that time`()
    async throws
  {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let answer = device.enrollment
    let root = try VerifyingKey(bytes: try #require(Base64URL.decode(answer.rootKey)))
    let enrolment = try Enrolment(
      tenant: answer.tenant, device: answer.deviceId, server: "http://localhost", root: root,
      fingerprint: root.fingerprint, pinnedCertificate: nil, keyset: answer.keyset, bundle: answer.policy,
      now: harness.time.seconds)
    harness.time.set(by: Publisher.bundleLifetime * 2)
    _ = try await harness.server.current(tenant: company.tenant.id)
    let ahead = try await harness.current(company.tenant)
    #expect(ahead.number == 2 && ahead.issuedAt == harness.time.seconds)
    harness.time.set(by: -Publisher.bundleLifetime * 2)
    let offered = try await Self.policy(device)
    let now = harness.time.seconds
    let taken = try enrolment.accepting(bundle: offered.policy, keyset: offered.keyset, now: now)
    #expect(taken.policy.revision == 3 && taken.policy.prevHash == ahead.digest)
    #expect(taken.policy.issuedAt == now && taken.policy.notAfter == now + Publisher.bundleLifetime)
    #expect(taken.trustedTime == now)
    // Once is enough.
    _ = try await Self.policy(device)
    #expect(try await harness.current(company.tenant).number == 3)
  }

  @Test func `by a clock that is set back a little nothing is signed anew, and the chains go on`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    _ = try await company.add("a")
    harness.time.set(by: -Lifetime.tolerance)
    _ = try await Self.policy(device)
    #expect(try await harness.current(company.tenant).number == 2)
    harness.time.set(by: -Self.year)
    let reply = try await harness.send(.post, "/items", token: company.owner, json: Company.item("b"))
    // Tokens of the future hold for nobody.
    #expect(reply.status == 401)
    let owner = try await harness.administration.createToken(tenant: company.tenant.id, role: .owner).secret.text
    #expect(try await harness.send(.post, "/items", token: owner, json: Company.item("b")).status == 201)
    #expect(try await harness.current(company.tenant).number == 3)
    #expect(try await RevisionTests.verifyChain(company).count == 3)
    let export = try await harness.send(.get, "/v1/audit/export", token: owner)
    #expect(throws: Never.self) { try AuditTests.verify(export.body.split(separator: 10).map(Array.init)) }
    // Put right, the policy that says it is of last year is signed anew.
    harness.time.set(by: Self.year + Lifetime.tolerance)
    _ = try await Self.policy(device)
    let policy = try await company.policy()
    #expect(policy.revision == 4 && policy.issuedAt == harness.time.seconds)
    #expect(Set(policy.apps.map(\.bundleId)) == ["a", "b"])
  }
}
