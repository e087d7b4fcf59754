import CofferAPI
import CofferClient
import CofferCrypto
import CofferPolicy
import CofferSystem
import Foundation
import Testing

struct RefreshTests {
  /// Enrols at a new company, and then refreshes at the same server after `change`.
  func refreshed(
    _ change: @Sendable (FakeCompany, Enrolment) throws -> Void
  ) async throws -> (company: FakeCompany, before: Enrolment, after: Enrolment, asks: [Ask]) {
    let company = FakeCompany()
    return try await LoopbackServer.run(company.answer) { server in
      let client = company.client
      let (before, key) = try await client.enroll(url: "http://127.0.0.1:\(server.port)", code: company.code.text)
      let count = server.asks.count
      try change(company, before)
      return (company, before, try await client.refresh(before, deviceKey: key), Array(server.asks.dropFirst(count)))
    }
  }

  func refusal(_ change: @Sendable (FakeCompany, Enrolment) throws -> Void) async -> ClientError? {
    await #expect(throws: ClientError.self) { try await refreshed(change) }
  }

  @Test func `an unchanged policy is not fetched again, and is confirmed`() async throws {
    let (company, before, after, asks) = try await refreshed { company, _ in company.update { $0.now += 5_000 } }
    #expect(after.bundle == before.bundle)
    #expect(before.age(now: company.current.now) == 5_000)
    #expect(after.age(now: company.current.now) == 0)
    #expect(asks.map(\.path) == ["/v1/device/token", "/v1/device/policy", "/v1/device/status"])
    #expect(asks[1].headers["if-none-match"] == "\"\(before.bundle.digest)\"")
  }

  @Test func `a new policy is taken and confirmed`() async throws {
    let (_, _, after, _) = try await refreshed { company, _ in company.advance() }
    #expect(after.policy.revision == 6)
    #expect(after.lastStatus?.revision == 6)
  }

  @Test func `a policy that changes between the two questions is fetched again`() async throws {
    let (_, _, after, asks) = try await refreshed { company, _ in
      company.script("/v1/device/status") { _ in
        company.advance()
        company.update { $0.scripted = [:] }
        return nil
      }
    }
    #expect(after.policy.revision == 6)
    #expect(after.lastStatus != nil)
    #expect(asks.count == 5)
  }

  @Test func `an ageing keyset is asked for though the policy is unchanged`() async throws {
    let (company, before, after, _) = try await refreshed { company, _ in company.update { $0.now += 600_000 } }
    #expect(after.bundle == before.bundle)
    #expect(after.keyset.keyset.issuedAt == company.current.now)
  }

  @Test func `rotated keys are taken`() async throws {
    let (_, _, after, _) = try await refreshed { company, _ in
      company.update {
        $0.key = SigningKey()
        $0.epoch = 2
        $0.revision = 1
      }
    }
    #expect(after.keyset.keyset.epoch == 2)
    #expect(after.policy.revision == 1)
    #expect(after.lastStatus != nil)
  }

  @Test func `a new policy that could not be confirmed is kept`() async throws {
    let (_, _, after, _) = try await refreshed { company, _ in
      company.advance()
      company.script("/v1/device/status") { _ in Reply(status: 500) }
    }
    #expect(after.policy.revision == 6)
    #expect(after.lastStatus == nil)
  }

  @Test func `an older, conflicting, foreign or altered policy is refused`() async throws {
    let older = await refusal { company, _ in company.update { $0.revision = 4 } }
    #expect(older == .documentRefused(.olderRevision(held: 5, offered: 4)))
    let conflicting = await refusal { company, _ in
      company.update { $0.change = { $0.settings.allowFilteredTier = true } }
    }
    #expect(conflicting == .documentRefused(.conflictingRevision(5)))
    let otherDevice = await refusal { company, _ in company.update { $0.change = { $0.audience = "device-2" } } }
    #expect(otherDevice == .documentRefused(.otherAudience))
    let expired = await refusal { company, _ in
      company.advance()
      company.update { $0.change = { $0.notAfter = 1_799_999_999 } }
    }
    #expect(expired == .documentRefused(.expired(.policy)))
    let altered = await refusal { company, _ in
      let text = company.bundle().document.text
      let reply = company.json(PolicyResponse(keyset: company.keyset(), policy: text + "A"))
      company.script("/v1/device/policy") { _ in reply }
    }
    #expect(altered == .documentRefused(.malformed("policy")))
  }

  @Test func `a bare 304 does not renew the grace period, and neither does a recorded status`() async throws {
    let recorded = await refusal { company, _ in
      let reply = company.json(StatusResponse(status: company.status(nonce: Base64URL.encode(Randomness.bytes(32)))))
      company.script("/v1/device/status") { _ in reply }
    }
    #expect(recorded == .documentRefused(.otherNonce))
    let silent = await refusal { company, _ in company.script("/v1/device/status") { _ in Reply(status: 304) } }
    #expect(silent == .unexpectedAnswer(status: 304))
  }

  @Test func `each question has a nonce of its own`() async throws {
    let company = FakeCompany()
    let nonces = try await LoopbackServer.run(company.answer) { server in
      let client = company.client
      let (enrolment, key) = try await client.enroll(url: "http://127.0.0.1:\(server.port)", code: company.code.text)
      _ = try await client.refresh(enrolment, deviceKey: key)
      return try server.asks.filter { $0.path == "/v1/device/status" }.map {
        try JSONDecoder().decode(StatusRequest.self, from: Data($0.body)).nonce
      }
    }
    #expect(nonces.count == 2)
    #expect(Set(nonces).count == 2)
    #expect(nonces.allSatisfy(Status.isNonce))
  }

  @Test(arguments: ["/v1/device/token", "/v1/device/policy", "/v1/device/status"], [401, 403])
  func `a device that the server does not know is told so`(path: String, status: Int) async throws {
    let error = await refusal { company, _ in company.script(path) { _ in Reply(status: status) } }
    #expect(error == .deviceRefused)
    #expect(error?.kind == .refused)
  }

  @Test func `another device's key opens nothing`() async throws {
    let company = FakeCompany()
    try await LoopbackServer.run(company.answer) { server in
      let client = company.client
      let (enrolment, _) = try await client.enroll(url: "http://127.0.0.1:\(server.port)", code: company.code.text)
      await #expect(throws: ClientError.deviceRefused) {
        try await client.refresh(enrolment, deviceKey: SigningKey())
      }
    }
  }

  @Test(arguments: [
    #"{}"#, #"{"access_token":"","token_type":"Bearer","expires_in":1}"#,
    #"{"access_token":"a\r\nx: y","token_type":"Bearer","expires_in":1}"#,
    #"{"access_token":"a","token_type":"MAC","expires_in":1}"#,
  ])
  func `a token that is none is refused`(body: String) async throws {
    let error = await refusal { company, _ in
      company.script("/v1/device/token") { _ in Reply(body: Array(body.utf8)) }
    }
    #expect(error == .unexpectedAnswer(status: 200))
  }

  @Test func `an oversized token or status is refused`() async throws {
    for path in ["/v1/device/token", "/v1/device/status"] {
      let error = await refusal { company, _ in
        company.script(path) { _ in Reply(body: [UInt8](repeating: UInt8(ascii: " "), count: 100_000)) }
      }
      #expect(error == .oversizedAnswer)
    }
  }
}
