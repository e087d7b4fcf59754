import CofferAPI
import CofferSystem
import CofferTestSupport
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import NIOSSL
import Testing

@testable import CofferServer

/// The server behind real sockets.
@Suite struct SocketTests {
  /// What Coffer's server takes by default, but with an hour for what a client or the server waits for: beside hundreds
  /// of tests that hold every thread, a request can take minutes.
  private static func options(_ host: String, tls: ServerOptions.TLS? = nil) throws -> ServerOptions {
    var limits = ServerOptions.Limits()
    limits.requestSeconds = 3600
    limits.answerSeconds = 3600
    limits.idleSeconds = 3600
    return try ServerOptions(host: host, port: 0, tls: tls, limits: limits)
  }

  /// Calls `body` with one connection to a server that runs meanwhile.
  private static func serve(
    _ server: PolicyServer, _ options: ServerOptions, _ body: @escaping @Sendable (TestClient) async throws -> Void
  ) async throws {
    var trustsAnybody = TLSConfiguration.makeClientConfiguration()
    trustsAnybody.certificateVerification = .none
    let configuration = TestClient.Configuration(
      tlsConfiguration: options.tls == nil ? nil : trustsAnybody, timeout: .seconds(3600), serverName: "localhost")
    // The client that comes with it waits 15 seconds, and connects when it is first asked, which it is not.
    try await server.application(options) { _ in }.test(.ahc(options.tls == nil ? .http : .https)) { served in
      try await TestClient.withClient(
        host: "127.0.0.1", port: #require(served.port), configuration: configuration, operation: body)
    }
  }

  static func files(_ folder: TemporaryFolder, certificate: String, key: String) throws -> ServerOptions.TLS {
    try Data(certificate.utf8).write(to: URL(fileURLWithPath: folder("c.pem")))
    try Data(key.utf8).write(to: URL(fileURLWithPath: folder("k.pem")))
    return ServerOptions.TLS(certificate: folder("c.pem"), key: folder("k.pem"))
  }

  @Test func `one connection carries refusals and goes on`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    try await Self.serve(harness.server, Self.options("127.0.0.1")) { client in
      func send(
        _ method: HTTPRequest.Method, _ uri: String, _ body: ByteBuffer? = nil
      ) async throws -> TestClient.Response {
        let headers: HTTPFields = [
          .authorization: "Bearer \(company.owner)", .contentType: "application/json",
        ]
        return try await client.execute(
          .init(uri, method: method, authority: "localhost", headers: headers, body: body))
      }
      #expect(try await client.execute(.init("/items", method: .get, authority: "localhost")).status.code == 401)
      #expect(try await send(.post, "/items", ByteBuffer(repeating: 32, count: 1 << 20)).status.code == 413)
      #expect(try await send(.head, "/items").status.code == 200)
      #expect(try await send(.patch, "/items").status.code == 405)
      #expect(try await send(.get, "/nothing").status.code == 404)
      #expect(try await send(.post, "/items", ByteBuffer(string: Company.item())).status.code == 201)
      let list = try await send(.get, "/items")
      #expect(list.status.code == 200)
      #expect(list.headers[.cacheControl] == "no-store")
      let body = try #require(list.body)
      #expect(try JSONDecoder().decode([Item].self, from: Data(body.readableBytesView)).count == 1)
    }
  }

  @Test func `the port that the system chose is told`() async throws {
    let harness = try Harness()
    let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
    let run = Task {
      try await harness.server.run(ServerOptions(host: "127.0.0.1", port: 0)) { continuation.yield($0) }
    }
    let port = await ports.first { _ in true }
    #expect(port ?? 0 > 0)
    // The address is taken now.
    await #expect(throws: ServerError.self) {
      try await harness.server.run(ServerOptions(host: "127.0.0.1", port: port ?? 0)) { _ in }
    }
    run.cancel()
    _ = await run.result
  }

  @Test func `with a certificate it speaks TLS`() async throws {
    let harness = try Harness()
    let tls = try Self.files(harness.folder, certificate: TLSFixture.certificate, key: TLSFixture.key)
    try await Self.serve(harness.server, Self.options("0.0.0.0", tls: tls)) { client in
      let reply = try await client.execute(.init("/health", method: .get, authority: "localhost"))
      #expect(reply.status.code == 200)
    }
  }

  @Test(arguments: [
    (TLSFixture.certificate, "nonsense"), ("nonsense", TLSFixture.key), ("", TLSFixture.key),
    (TLSFixture.key, TLSFixture.certificate),
  ])
  func `files that are no certificate and key are refused`(certificate: String, key: String) throws {
    let harness = try Harness()
    let tls = try Self.files(harness.folder, certificate: certificate, key: key)
    #expect(throws: ServerError.self) {
      _ = try harness.server.application(ServerOptions(host: "127.0.0.1", port: 0, tls: tls)) { _ in }
    }
  }
}
