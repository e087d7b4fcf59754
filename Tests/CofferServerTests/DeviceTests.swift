import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import CofferSystem
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// Enrolment, tokens by assertion, policy and status: what a device meets.
@Suite struct DeviceTests {
  @Test func `a device enrols and trusts from the code's fingerprint down`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let item = try await company.add()
    let code = try #require(EnrollmentCode(try await company.code().text))
    let reply = try await harness.send(.post, "/v1/enroll", json: Company.enrollment(code.secret))
    #expect(reply.status == 201)
    let answer = try reply.json(EnrollResponse.self)
    #expect(answer.tenant == company.tenant.id)
    let root = try VerifyingKey(bytes: try #require(Base64URL.decode(answer.rootKey)))
    let enrolment = try Enrolment(
      tenant: answer.tenant, device: answer.deviceId, server: "http://localhost", root: root,
      fingerprint: code.fingerprint, pinnedCertificate: nil, keyset: answer.keyset, bundle: answer.policy,
      now: harness.time.seconds)
    #expect(enrolment.policy.apps.map(\.id) == [item.id])
    #expect(enrolment.policy.apps.first?.extensions.sorted() == ["docx", "pdf"])
  }

  @Test func `a code that is unknown, used or expired gets one answer`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (used, old) = (try await company.code().secret, try await company.code().secret)
    let kept = try await harness.administration.createEnrollment(tenant: "Acme", lifetime: 2 * 86_400).code.secret
    #expect(try await harness.send(.post, "/v1/enroll", json: Company.enrollment(used)).status == 201)
    harness.time.advance(86_400 - 1)
    let fresh = try await company.code().secret
    harness.time.advance(1)
    let unknown = EnrollmentCode(
      secret: [UInt8](repeating: 7, count: 20), fingerprint: company.tenant.keys.root.fingerprint)
    var replies: [Reply] = []
    for secret in [used, old, unknown.secret, unknown.text, "", "nonsense", fresh.uppercased() + "=", used] {
      replies.append(try await harness.send(.post, "/v1/enroll", json: Company.enrollment(secret)))
    }
    for reply in replies {
      #expect(reply.status == 404)
      #expect(reply.problem == CofferAPI.Problem.enrollmentCode)
      #expect(reply.body == replies[0].body)
      #expect(reply.headers == replies[0].headers)
    }
    for secret in [fresh, kept] {
      #expect(try await harness.send(.post, "/v1/enroll", json: Company.enrollment(secret)).status == 201)
    }
    #expect(try await harness.store.read { try $0.devices(tenant: company.tenant.id).count } == 3)
  }

  @Test func `of devices that use one code at once one joins`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let secret = try await company.code().secret
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<6 {
        group.addTask { try await harness.send(.post, "/v1/enroll", json: Company.enrollment(secret)).status }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses.sorted() == [201] + Array(repeating: 404, count: 5))
  }

  @Test func `a body that is not valid leaves the code unused`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let secret = try await company.code().secret
    let valid = Company.enrollment(secret)
    for invalid in [
      #"{"code":"\#(secret)"}"#, #"{"code":"\#(secret)","deviceKey":"AAAA"}"#, #"{"code":7,"deviceKey":"AAAA"}"#,
      valid.replacing(#""linux""#, with: #""\u0007""#), valid.replacing(#""linux""#, with: "1"),
    ] {
      #expect(try await harness.send(.post, "/v1/enroll", json: invalid).status == 422)
    }
    #expect(try await harness.send(.post, "/v1/enroll", json: valid).status == 201)
  }

  @Test func `an assertion is taken once, then and after it expired`() async throws {
    let harness = try Harness()
    let device = try await harness.company().enroll()
    let assertion = try device.assertion()
    #expect(try await device.requestToken(assertion).status == 200)
    var replies = [try await device.requestToken(assertion)]
    // Inside the tolerance the assertion itself would still pass; later it would not.
    for step: Int64 in [120, 59, 1, 1000] {
      harness.time.advance(step)
      // Another assertion makes the server forget what expired.
      #expect(try await device.requestToken(device.assertion()).status == 200)
      replies.append(try await device.requestToken(assertion))
    }
    for reply in replies {
      #expect(reply.status == 400)
      #expect(reply.problem == "invalid-assertion")
      #expect(String(decoding: reply.body, as: UTF8.self).contains(#""error":"invalid_grant""#))
    }
  }

  @Test func `an assertion that was sent twice at once gets one token`() async throws {
    let harness = try Harness()
    let device = try await harness.company().enroll()
    let assertion = try device.assertion()
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<6 { group.addTask { try await device.requestToken(assertion).status } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses.sorted() == [200] + Array(repeating: 400, count: 5))
  }

  @Test func `one key may stand for many devices, of which each is who it says`() async throws {
    let harness = try Harness()
    let key = SigningKey()
    var devices: [EnrolledDevice] = []
    for company in [try await harness.company(), try await harness.company("Other")] {
      for _ in 0..<3 { devices.append(try await company.enroll(key)) }
    }
    for device in devices.shuffled() {
      let hash = Digest.sha256(try await device.token().utf8)
      let found = try #require(try await harness.store.read { try $0.device(tokenHash: hash) })
      #expect(found.device.id == device.enrollment.deviceId && found.device.tenant == device.enrollment.tenant)
    }
  }

  @Test func `a device that is removed while it signs in gets no token`() async throws {
    let harness = try Harness()
    let device = try await harness.company().enroll()
    let (tenant, id) = (device.enrollment.tenant, device.enrollment.deviceId)
    harness.faults.beforeNextWrite { store in
      _ = try await store.write { try $0.deleteDevice(tenant: tenant, id: id) }
    }
    let reply = try await device.requestToken(device.assertion())
    #expect(reply.status == 400 && reply.problem == "invalid-assertion")
  }

  @Test func `an assertion is refused for each thing that is wrong with it`() async throws {
    let harness = try Harness()
    let (company, other) = (try await harness.company(), try await harness.company("Other"))
    let (device, second, foreign) = (try await company.enroll(), try await company.enroll(), try await other.enroll())
    let now = harness.time.seconds
    let valid = try device.assertion()
    let parts = valid.split(separator: ".")
    let none = Base64URL.encode(#"{"alg":"none","kid":"\#(device.key.verifyingKey.keyID)","typ":"JWT"}"#.utf8)
    let refused: [String] = [
      try device.assertion(key: SigningKey()),
      try device.assertion(key: second.key),
      try device.assertion { $0.aud = other.tenant.id },
      try device.assertion { $0.aud = "" },
      try device.assertion { $0.iss = second.enrollment.deviceId },
      try device.assertion { $0.sub = second.enrollment.deviceId },
      try device.assertion {
        $0.iss = foreign.enrollment.deviceId
        $0.sub = foreign.enrollment.deviceId
      },
      try device.assertion {
        $0.iat = now - 400
        $0.exp = now - 100
      },
      try device.assertion {
        $0.iat = now + 100
        $0.exp = now + 200
      },
      try device.assertion { $0.exp = now + 301 },
      try device.assertion { $0.exp = $0.iat },
      try device.assertion { $0.exp = .max },
      try device.assertion { $0.iat = .min },
      try device.assertion { $0.jti = "" },
      try device.assertion { $0.jti = String(repeating: "a", count: 129) },
      "\(parts[0]).\(parts[1])", "\(parts[0]).\(parts[1]).", "\(none).\(parts[1]).", "\(none).\(parts[1]).\(parts[2])",
      "\(parts[0]).\(parts[2]).\(parts[1])", "", "a.b.c", valid + "A",
      device.enrollment.policy, device.enrollment.keyset,
    ]
    for assertion in refused {
      let reply = try await device.requestToken(assertion)
      #expect(reply.status == 400)
      #expect(reply.problem == "invalid-assertion")
    }
    #expect(try await device.requestToken(valid).status == 200)
  }

  @Test(arguments: [
    "", "assertion=ASSERTION", "grant_type=GRANT", "grant_type=password&assertion=ASSERTION",
    "grant_type=GRANT&assertion=ASSERTION&assertion=ASSERTION", "grant_type=GRANT&assertion=ASSERTION&scope=all",
    "grant_type=GRANT&grant_type=GRANT&assertion=ASSERTION", "grant_type=GRANT&assertion=%GG", "&", "=",
    "grant_type=GRANT&assertion=ASSERTION&",
  ])
  func `a form that is not exactly the grant is refused`(form: String) async throws {
    let harness = try Harness()
    let device = try await harness.company().enroll()
    let body = form.replacing("GRANT", with: TokenRequest.grantType).replacing(
      "ASSERTION", with: try device.assertion())
    let reply = try await harness.send(
      .post, "/v1/device/token", json: body, type: "application/x-www-form-urlencoded")
    #expect(reply.status == 400)
  }

  @Test func `one key may be a device of two companies`() async throws {
    let harness = try Harness()
    let key = SigningKey()
    let (company, other) = (try await harness.company(), try await harness.company("Other"))
    let (device, foreign) = (try await company.enroll(key), try await other.enroll(key))
    for one in [device, foreign] {
      let token = try await one.token()
      let policy = try await harness.send(.get, "/v1/device/policy", token: token).json(PolicyResponse.self)
      #expect(policy == PolicyResponse(keyset: one.enrollment.keyset, policy: one.enrollment.policy))
    }
    #expect(device.enrollment.policy != foreign.enrollment.policy)
  }

  @Test func `a device token expires, and ends with its device`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (device, other) = (try await company.enroll(), try await company.enroll())
    let first = try await device.token()
    harness.time.advance(PolicyServer.deviceTokenLifetime - 1)
    let second = try await device.token()
    #expect(try await harness.send(.get, "/v1/device/policy", token: first).status == 200)
    harness.time.advance(1)
    #expect(try await harness.send(.get, "/v1/device/policy", token: first).status == 401)
    #expect(try await harness.send(.get, "/v1/device/policy", token: second).status == 200)
    let path = "/v1/devices/\(device.enrollment.deviceId)"
    #expect(try await harness.send(.delete, path, token: company.owner).status == 204)
    #expect(try await harness.send(.get, "/v1/device/policy", token: second).status == 401)
    #expect(try await device.requestToken(device.assertion()).status == 400)
    #expect(try await harness.send(.get, "/v1/device/policy", token: other.token()).status == 200)
  }

  @Test func `an unchanged policy costs no bytes, a changed one is sent`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let token = try await device.token()
    func fetch(_ known: String) async throws -> Reply {
      try await harness.send(.get, "/v1/device/policy", token: token, headers: [.ifNoneMatch: known])
    }
    let first = try await harness.send(.get, "/v1/device/policy", token: token)
    let tag = try #require(first.headers[.eTag])
    let revision = try await harness.current(company.tenant)
    #expect(tag == "\"\(revision.digest)\"")
    for known in [tag, "W/\(tag)", "\"x\", \(tag)", "*"] {
      let reply = try await fetch(known)
      #expect(reply.status == 304)
      #expect(reply.body.isEmpty)
      #expect(reply.headers[.eTag] == tag)
    }
    for unknown in ["\"x\"", String(tag.dropFirst().dropLast()), ""] {
      #expect(try await fetch(unknown).body == first.body)
    }
    let item = try await company.add()
    let changed = try await fetch(tag)
    #expect(changed.status == 200)
    #expect(changed.headers[.eTag] != tag)
    #expect(try await harness.send(.delete, "/items/\(item.id)", token: company.owner).status == 204)
    // The same apps as at first, and yet a newer policy.
    #expect(try await fetch(tag).status == 200)
    #expect(try await company.policy().apps.isEmpty)
  }

  @Test func `a status is signed over the device's nonce`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let token = try await device.token()
    harness.time.advance(7)
    for nonce in [String(repeating: "A", count: 43), Base64URL.encode((0..<16).map { UInt8($0) })] {
      let reply = try await harness.send(.post, "/v1/device/status", token: token, json: #"{"nonce":"\#(nonce)"}"#)
      let keyset = try SignedKeyset(verifying: device.enrollment.keyset, root: company.tenant.keys.root).keyset
      let status = try SignedStatus(verifying: reply.json(StatusResponse.self).status, keyset: keyset).status
      let revision = try await harness.current(company.tenant)
      let last = try #require(
        try await harness.store.read { try $0.lastAuditRecord(tenant: company.tenant.id) })
      let expected = Status(
        tenant: company.tenant.id, audience: device.enrollment.deviceId, nonce: nonce, revision: revision.number,
        digest: revision.digest, time: harness.time.seconds, keyEpoch: 1,
        audit: AuditMark(number: last.number, hash: last.hash.hexadecimal))
      #expect(status == expected)
    }
    for nonce in ["", "AAAA", String(repeating: "A", count: 90), String(repeating: "!", count: 43)] {
      let reply = try await harness.send(.post, "/v1/device/status", token: token, json: #"{"nonce":"\#(nonce)"}"#)
      #expect(reply.status == 422)
    }
  }
}
