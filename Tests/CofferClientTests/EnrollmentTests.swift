import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferSystem
import Foundation
import Testing

@testable import CofferClient

struct EnrollmentTests {
  let company = FakeCompany()

  func enroll(code: String? = nil) async throws -> (Enrolment, SigningKey) {
    try await LoopbackServer.run(company.answer) { server in
      try await company.client.enroll(url: "http://127.0.0.1:\(server.port)", code: code ?? company.code.text)
    }
  }

  /// Enrols at a server that answers with `reply`, and returns the refusal.
  func refusal(_ reply: Reply) async -> ClientError? {
    company.script("/v1/enroll") { _ in reply }
    return await #expect(throws: ClientError.self) { try await enroll() }
  }

  @Test func `joins with a code, and has the policy confirmed at once`() async throws {
    let (enrolment, key) = try await enroll()
    #expect(enrolment.tenant == "acme")
    #expect(enrolment.device == FakeCompany.device)
    #expect(enrolment.policy.revision == 5)
    #expect(enrolment.root == company.root.verifyingKey)
    #expect(enrolment.lastStatus != nil)
    #expect(enrolment.age(now: company.current.now) == 0)
    #expect(key.verifyingKey == company.current.device)
  }

  @Test func `the fingerprint and the private key stay on the device`() async throws {
    try await LoopbackServer.run(company.answer) { server in
      let (_, key) = try await company.client.enroll(url: "http://localhost:\(server.port)/", code: company.code.text)
      let seed = key.seed.withUnsafeBytes { Array($0) }
      for ask in server.asks {
        let text = String(decoding: ask.body, as: UTF8.self)
        #expect(!text.contains(company.code.text.split(separator: "-")[2]))
        #expect(!text.contains(Base64URL.encode(seed)))
      }
      #expect(server.paths == ["/v1/enroll", "/v1/device/token", "/v1/device/policy", "/v1/device/status"])
    }
  }

  @Test func `an enrolment that could not be confirmed is not lost`() async throws {
    company.script("/v1/device/token") { _ in Reply(status: 503) }
    let (enrolment, _) = try await enroll()
    #expect(enrolment.policy.revision == 5)
    #expect(enrolment.lastStatus == nil)
  }

  @Test func `a code that is unknown or used is refused`() async throws {
    let foreign = FakeCompany().code.text
    await #expect(throws: ClientError.codeRefused) { try await enroll(code: foreign) }
    _ = try await enroll()
    await #expect(throws: ClientError.codeRefused) { try await enroll() }
    #expect(ClientError.codeRefused.kind == .refused)
  }

  @Test(arguments: ["", "COF1", "COF1-abc-def", "https://example.com"])
  func `what is no code is refused without any connection`(text: String) async throws {
    try await LoopbackServer.run(company.answer) { server in
      await #expect(throws: ClientError.badCode) {
        try await company.client.enroll(url: "http://127.0.0.1:\(server.port)", code: text)
      }
      #expect(server.asks.isEmpty)
    }
  }

  @Test func `a server with another root key is not believed`() async throws {
    let other = FakeCompany()
    // The right secret part, as a man in the middle would see it, and another company's key behind it.
    let response = EnrollResponse(
      deviceId: "device-1", tenant: "acme", rootKey: other.root.verifyingKey.text, keyset: other.keyset(),
      policy: other.bundle().document.text)
    #expect(await refusal(company.json(response, status: 201)) == .documentRefused(.foreignRoot))
    // The true root key, which is public, and everything else forged.
    var mixed = response
    mixed.rootKey = company.root.verifyingKey.text
    #expect(await refusal(company.json(mixed, status: 201)) == .documentRefused(.unknownKey(.keyset)))
    mixed.keyset = company.keyset()
    #expect(await refusal(company.json(mixed, status: 201)) == .documentRefused(.unknownKey(.policy)))
    mixed.rootKey = "AAAA"
    #expect(await refusal(company.json(mixed, status: 201)) == .documentRefused(.foreignRoot))
  }

  @Test func `an altered bundle is refused`() async throws {
    var parts = company.bundle().document.text.split(separator: ".").map(String.init)
    parts[1] = parts[1].replacing("e", with: "f", maxReplacements: 1)
    let response = EnrollResponse(
      deviceId: "device-1", tenant: "acme", rootKey: company.root.verifyingKey.text, keyset: company.keyset(),
      policy: parts.joined(separator: "."))
    let refusal = await refusal(company.json(response, status: 201))
    #expect(refusal == .documentRefused(.notAuthentic(.policy)))
    #expect(refusal?.kind == .refused)
  }

  @Test func `answers that are not Coffer's are refused`() async throws {
    let whole = company.json(
      EnrollResponse(deviceId: "d", tenant: "t", rootKey: "r", keyset: "k", policy: "p"), status: 201)
    var cut = whole
    cut.body.removeLast(5)
    for body in [cut.body, [], [0xFF, 0xFE], Array("<html>".utf8), Array("[]".utf8), Array("{}".utf8)] {
      #expect(await refusal(Reply(status: 201, body: body)) == .unexpectedAnswer(status: 201))
      #expect(await refusal(Reply(status: 404, body: body)) == .unexpectedAnswer(status: 404))
    }
    for status in [200, 204, 400, 401, 403, 405, 409, 413, 429, 500, 502, 503] {
      #expect(await refusal(Reply(status: status)) == .unexpectedAnswer(status: status))
    }
    #expect(await refusal(company.problem("not-found", 404)) == .unexpectedAnswer(status: 404))
  }

  @Test func `an oversized answer is refused, whether it says its size or not`() async throws {
    let body = [UInt8](repeating: UInt8(ascii: " "), count: 6 << 20)
    #expect(await refusal(Reply(status: 201, body: body)) == .oversizedAnswer)
    let chunked = ["transfer-encoding": "chunked"]
    #expect(await refusal(Reply(status: 201, headers: chunked, body: body)) == .oversizedAnswer)
    let deep = [UInt8](repeating: UInt8(ascii: "["), count: 1 << 20)
    #expect(await refusal(Reply(status: 201, body: deep)) == .unexpectedAnswer(status: 201))
  }

  @Test func `a server that never ends its answer is given up`() async throws {
    let (asked, ask) = AsyncStream.makeStream(of: Void.self)
    company.script("/v1/enroll") { _ in
      ask.yield()
      return Reply(status: 201, stalls: true)
    }
    let timeout = Timeout(duration: .seconds(3600)) { _ in
      for await _ in asked { return }
    }
    try await LoopbackServer.run(company.answer) { server in
      await #expect(throws: ClientError.unreachable) {
        try await PolicyClient(time: company.clock, timeout: timeout).enroll(
          url: "http://127.0.0.1:\(server.port)", code: company.code.text)
      }
      #expect(server.paths == ["/v1/enroll"])
    }
  }

  @Test func `a server that is not there is unreachable`() async throws {
    let port = try await LoopbackServer.run(company.answer) { $0.port }
    let error = await #expect(throws: ClientError.self) {
      try await company.client.enroll(url: "http://127.0.0.1:\(port)", code: company.code.text)
    }
    #expect(error == .unreachable)
    #expect(error?.kind == .unavailable)
    await #expect(throws: ClientError.unreachable) {
      try await company.client.enroll(url: "https://no-such-host.invalid", code: company.code.text)
    }
  }

  @Test func `no error tells the code`() async throws {
    let secret = company.code.secret
    company.script("/v1/enroll") { ask in Reply(status: 500, body: ask.body) }
    let error = await #expect(throws: ClientError.self) { try await enroll() }
    var dumped = ""
    dump(error, to: &dumped)
    #expect(!dumped.contains(secret))
    #expect(error?.description.contains(secret) == false)
  }
}
