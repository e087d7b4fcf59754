import CofferAPI
import CofferClient
import CofferPolicy
import NIOCore
import NIOPosix
import NIOSSL
import Testing

struct TransportTests {
  let company = FakeCompany()
  let certificates = Certificates()

  /// Enrols at a server that shows `certificate`; returns the enrolment, and what the server saw of it.
  func enroll(
    _ certificate: Certificates.Certificate, pin: [UInt8]? = nil, host: String = "127.0.0.1",
    change: (inout TLSConfiguration) -> Void = { _ in }
  ) async throws -> (error: ClientError?, enrolment: Enrolment?, paths: [String]) {
    var tls = try certificate.server
    change(&tls)
    return try await LoopbackServer.run(tls: tls, company.answer) { server in
      do throws(ClientError) {
        let (enrolment, key) = try await company.client.enroll(
          url: "https://\(host):\(server.port)", code: company.code.text, pinnedCertificate: pin)
        // What was pinned holds for the next connection too.
        let next = try await company.client.refresh(enrolment, deviceKey: key)
        return (nil, next, server.paths)
      } catch {
        return (error, nil, server.paths)
      }
    }
  }

  /// Not even the code may have reached the server.
  func expectUntrusted(
    _ certificate: Certificates.Certificate, pin: [UInt8]? = nil, host: String = "127.0.0.1",
    change: (inout TLSConfiguration) -> Void = { _ in }, location: SourceLocation = #_sourceLocation
  ) async throws {
    let (error, _, paths) = try await enroll(certificate, pin: pin, host: host, change: change)
    #expect(error == .untrusted, sourceLocation: location)
    #expect(error?.kind == .unavailable, sourceLocation: location)
    #expect(paths.isEmpty, sourceLocation: location)
  }

  @Test func `a self-signed certificate is refused, and accepted when it is pinned`() async throws {
    let own = try certificates.make("server", names: "IP:127.0.0.1,DNS:localhost")
    try await expectUntrusted(own)
    for pin in [try own.pem, try own.der] {
      company.update { $0.device = nil }
      let (error, enrolment, _) = try await enroll(own, pin: pin)
      #expect(error == nil)
      #expect(enrolment?.pinnedCertificate == (try own.der))
      #expect(enrolment?.lastStatus != nil)
    }
    company.update { $0.device = nil }
    #expect(try await enroll(own, pin: own.pem, host: "localhost").error == nil)
  }

  @Test func `a pinned certificate must hold today`() async throws {
    let expired = try certificates.make("expired", names: "IP:127.0.0.1", from: 2020, to: 2021)
    try await expectUntrusted(expired, pin: expired.pem)
    let early = try certificates.make("early", names: "IP:127.0.0.1", from: 2048, to: 2049)
    try await expectUntrusted(early, pin: early.pem)
  }

  @Test func `a pinned certificate must be for the host`() async throws {
    for names in ["DNS:other.example", "IP:127.0.0.2", "DNS:127.0.0.1.example"] {
      let other = try certificates.make("other", names: names)
      try await expectUntrusted(other, pin: other.pem)
      try await expectUntrusted(other, pin: other.pem, host: "localhost")
    }
  }

  @Test func `a certificate other than the pinned one is refused`() async throws {
    let pinned = try certificates.make("server", names: "IP:127.0.0.1")
    // The same name and the same host, from another hand.
    let elsewhere = Certificates()
    let impostor = try elsewhere.make("server", names: "IP:127.0.0.1")
    try await expectUntrusted(impostor, pin: pinned.pem)
  }

  @Test func `an authority may be pinned, and then no other issues`() async throws {
    let authority = try certificates.make("authority", names: nil)
    let server = try certificates.make("server", names: "IP:127.0.0.1", issuer: authority)
    try await expectUntrusted(server)
    #expect(try await enroll(server, pin: authority.pem).error == nil)
    company.update { $0.device = nil }

    let elsewhere = Certificates()
    let otherAuthority = try elsewhere.make("authority", names: nil)
    try await expectUntrusted(server, pin: otherAuthority.pem)
    let expired = try certificates.make("old", names: "IP:127.0.0.1", issuer: authority, from: 2020, to: 2021)
    try await expectUntrusted(expired, pin: authority.pem)
    // A certificate whose issuer is not pinned stands on nothing, even when it is the server's own.
    try await expectUntrusted(server, pin: server.pem)
    // A server certificate is no authority.
    let issuedByServer = try certificates.make("sub", names: "IP:127.0.0.1", issuer: server)
    try await expectUntrusted(issuedByServer, pin: authority.pem)
  }

  @Test func `old versions of TLS are refused`() async throws {
    let own = try certificates.make("server", names: "IP:127.0.0.1")
    try await expectUntrusted(own, pin: own.pem) { tls in
      tls.minimumTLSVersion = .tlsv1
      tls.maximumTLSVersion = .tlsv11
    }
  }

  @Test func `a server without TLS is not talked to in plain`() async throws {
    try await LoopbackServer.run(company.answer) { server in
      let error = await #expect(throws: ClientError.self) {
        try await company.client.enroll(
          url: "https://127.0.0.1:\(server.port)", code: company.code.text)
      }
      #expect(error?.kind == .unavailable)
      #expect(server.asks.isEmpty)
    }
  }

  @Test func `what cannot be pinned is refused before any connection`() async throws {
    let own = try certificates.make("server", names: "IP:127.0.0.1")
    let two = try own.pem + own.pem
    for pin in [[], [0x30], Array("no certificate".utf8), two, [UInt8](repeating: 0x30, count: 70_000)] {
      let (error, _, paths) = try await enroll(own, pin: pin)
      #expect(error == .badCertificate)
      #expect(paths.isEmpty)
    }
  }

  static let steps = ["/v1/enroll", "/v1/device/token", "/v1/device/policy", "/v1/device/status"]

  @Test(arguments: [301, 302, 303, 307, 308])
  func `no redirect is followed, wherever it leads`(status: Int) async throws {
    let anything: @Sendable (Ask) -> Reply = { _ in Reply() }
    try await LoopbackServer.run(anything) { target in
      for path in Self.steps {
        let places = [
          "http://127.0.0.1:\(target.port)/v1/enroll", "//127.0.0.1:\(target.port)/x", "/elsewhere",
          "https://127.0.0.1:\(target.port)/",
        ]
        for place in places {
          let company = FakeCompany()
          let paths = try await LoopbackServer.run(company.answer) { server in
            let client = company.client
            let url = "http://127.0.0.1:\(server.port)"
            let redirect: @Sendable (Ask) -> Reply? = { _ in Reply(status: status, headers: ["location": place]) }
            if path == "/v1/enroll" {
              company.script(path, redirect)
              await #expect(throws: ClientError.redirected(status: status)) {
                try await client.enroll(url: url, code: company.code.text)
              }
            } else {
              let (enrolment, key) = try await client.enroll(url: url, code: company.code.text)
              company.script(path, redirect)
              await #expect(throws: ClientError.redirected(status: status)) {
                try await client.refresh(enrolment, deviceKey: key)
              }
            }
            return server.paths
          }
          #expect(!paths.contains("/elsewhere"))
        }
      }
      #expect(target.asks.isEmpty)
    }
  }

  @Test func `a redirect from TLS to plain HTTP is not followed`() async throws {
    let own = try certificates.make("server", names: "IP:127.0.0.1")
    try await LoopbackServer.run(company.answer) { target in
      company.script("/v1/enroll") { _ in
        Reply(status: 307, headers: ["location": "http://127.0.0.1:\(target.port)/v1/enroll"])
      }
      let (error, _, _) = try await enroll(own, pin: own.pem)
      #expect(error == .redirected(status: 307))
      #expect(target.asks.isEmpty)
    }
  }

  /// An address of this machine that is not loopback, where it has one.
  static let ownAddress = try? System.enumerateDevices().compactMap(\.address).first { address in
    address.protocol == .inet && !(address.ipAddress ?? "127").hasPrefix("127.")
  }?.ipAddress

  @Test(.enabled(if: ownAddress != nil))
  func `plain HTTP to another address is refused without a connection`() async throws {
    try await LoopbackServer.run(host: "0.0.0.0", company.answer) { server in
      await #expect(throws: ClientError.insecureAddress) {
        try await company.client.enroll(
          url: "http://\(Self.ownAddress!):\(server.port)", code: company.code.text)
      }
      #expect(server.asks.isEmpty)
    }
  }

  @Test(arguments: [
    "http://policy.example", "http://127.0.0.1.example", "http://localhost.example", "http://2130706433",
    "http://127.1", "http://0x7f.0.0.1", "http://127.0.0.01", "http://0.0.0.0", "http://[::]", "http://10.0.0.1",
    "http://[::ffff:127.0.0.1]", "http://128.0.0.1", "HTTP://policy.example", "http://127.0.0.256", "http://127.0.0.1.",
  ])
  func `plain HTTP to anything but loopback is refused`(url: String) async {
    await #expect(throws: ClientError.insecureAddress) {
      try await company.client.enroll(url: url, code: company.code.text)
    }
  }

  @Test(arguments: [
    "", "policy.example", "ftp://policy.example", "file:///etc/passwd", "https://", "https://user@policy.example",
    "https://user:secret@policy.example", "https://policy.example?x=1", "https://policy.example#x",
    "https://policy.example/a b", "https://policy.example/../x", "https://policy.example/%2e%2e/",
    "https://policy.example:0", "https://policy.example:70000", "http://127.0.0.1\\@policy.example",
    "http://127.0.0.1@policy.example", "https://policy.example\r\nx: y", "unix:///tmp/socket", "http+unix://a",
    "https://pol%69cy.example",
  ])
  func `an address of another form is refused`(url: String) async {
    await #expect(throws: ClientError.badAddress) {
      try await company.client.enroll(url: url, code: company.code.text)
    }
  }

  @Test(arguments: [
    "http://127.0.0.1:PORT", "http://localhost:PORT/", "HTTP://LOCALHOST:PORT", "http://127.0.0.1:PORT//",
  ])
  func `plain HTTP to loopback is allowed`(url: String) async throws {
    try await LoopbackServer.run(company.answer) { server in
      let (enrolment, _) = try await company.client.enroll(
        url: url.replacing("PORT", with: "\(server.port)"), code: company.code.text)
      #expect(enrolment.lastStatus != nil)
    }
  }
}
