import CofferSystem
import Foundation
import HummingbirdTesting
import NIOCore
import NIOEmbedded
import Testing

@testable import CofferServer

/// What clients may not take.
@Suite struct LimitTests {
  /// Runs `body` with the port of a server that has these limits.
  static func serving(
    _ limits: ServerOptions.Limits, _ body: @escaping @Sendable (UInt16) throws -> Void
  ) async throws {
    let harness = try Harness()
    let options = try ServerOptions(host: "127.0.0.1", port: 0, limits: limits)
    let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
    let run = Task { try await harness.server.run(options) { continuation.yield($0) } }
    let port = try #require(await ports.first { _ in true })
    // In a thread of its own: reading blocks, and the server needs those of the pool.
    let result: Result<Void, any Error> = await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: Result { try body(UInt16(port)) }) }
    }
    run.cancel()
    _ = await run.result
    try result.get()
  }

  @Test func `a request that does not arrive whole in its time is cut off`() async throws {
    var limits = ServerOptions.Limits()
    limits.requestSeconds = 1
    try await Self.serving(limits) { port in
      let slow = try RawConnection(port: port)
      try slow.send(
        "POST /v1/enroll HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
      #expect(try slow.readToEnd().isEmpty)
      // One that arrives whole is answered, and the connection stays for the next.
      let good = try RawConnection(port: port)
      for _ in 0..<2 {
        try good.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try good.read(until: #"{"status":"ok"}"#).hasPrefix("HTTP/1.1 200"))
      }
    }
  }

  @Test func `a connection that stays silent, or says half of a head, is closed`() async throws {
    var limits = ServerOptions.Limits()
    limits.idleSeconds = 1
    try await Self.serving(limits) { port in
      let (silent, half) = (try RawConnection(port: port), try RawConnection(port: port))
      try half.send("GET /health HTTP/1.1\r\nHost: x\r\nX-")
      #expect(try silent.readToEnd().isEmpty)
      #expect(try !half.readToEnd().hasPrefix("HTTP/1.1 200"))
    }
  }

  @Test func `an answer that nobody takes is given up, and one that is taken in time is not`() throws {
    for isTaken in [true, false] {
      let channel = EmbeddedChannel(
        handler: ConnectionGuard(
          counts: ConnectionCounts(limit: 1), requestTime: .seconds(5), answerTime: .seconds(60)))
      try channel.connect(to: SocketAddress(unixDomainSocketPath: "/client")).wait()
      channel.isWritable = false
      channel.pipeline.fireChannelWritabilityChanged()
      channel.embeddedEventLoop.advanceTime(by: .seconds(59))
      #expect(channel.isActive)
      if isTaken {
        channel.isWritable = true
        channel.pipeline.fireChannelWritabilityChanged()
      }
      channel.embeddedEventLoop.advanceTime(by: .seconds(60))
      #expect(channel.isActive == isTaken)
    }
  }

  @Test func `headers that are too long or too many are refused`() async throws {
    try await Self.serving(ServerOptions.Limits()) { port in
      let long = "X-Long: \(String(repeating: "x", count: 17 << 10))\r\n"
      let many = (0..<101).map { "X-\($0): x\r\n" }.joined()
      for fields in [long, many] {
        let connection = try RawConnection(port: port)
        // The server may close before all of it was taken.
        try? connection.send("GET /health HTTP/1.1\r\nHost: x\r\n\(fields)\r\n")
        let answer = (try? connection.readToEnd()) ?? ""
        #expect(!answer.hasPrefix("HTTP/1.1 2"), "\(answer)")
      }
      let fine = try RawConnection(port: port)
      try fine.send("GET /health HTTP/1.1\r\nHost: x\r\nX-Long: \(String(repeating: "x", count: 8 << 10))\r\n\r\n")
      #expect(try fine.read(until: #"{"status":"ok"}"#).hasPrefix("HTTP/1.1 200"))
    }
  }

  @Test func `connections are counted by address until they are gone`() {
    let counts = ConnectionCounts(limit: 2)
    #expect(counts.enter("a") && counts.enter("a") && !counts.enter("a") && counts.enter("b"))
    counts.leave("a")
    #expect(counts.enter("a") && !counts.enter("a"))
  }
}
