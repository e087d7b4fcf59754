import CofferSystem
import Foundation
import HummingbirdTesting
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
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

  /// Makes bytes of an answer, as the HTTP stack does below the guard.
  private final class Encoder: ChannelOutboundHandler {
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = ByteBuffer

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      guard case .body(let buffer) = unwrapOutboundIn(data) else { return }
      context.write(wrapOutboundOut(buffer), promise: promise)
    }
  }

  /// A connection on which `count` bytes of an answer wait for the client.
  private static func waiting(_ count: Int) throws -> EmbeddedChannel {
    let channel = EmbeddedChannel(handlers: [
      Encoder(),
      ConnectionGuard(counts: ConnectionCounts(limit: 1), requestTime: .seconds(5), answerTime: .seconds(60)),
    ])
    try channel.connect(to: SocketAddress(unixDomainSocketPath: "/client")).wait()
    channel.write(HTTPResponsePart.body(ByteBuffer(repeating: 7, count: count)), promise: nil)
    channel.isWritable = false
    channel.pipeline.fireChannelWritabilityChanged()
    return channel
  }

  @Test func `an answer that nobody takes is given up, and one that is taken in time is not`() throws {
    for isTaken in [true, false] {
      let channel = try Self.waiting(100)
      channel.embeddedEventLoop.advanceTime(by: .seconds(59))
      #expect(channel.isActive)
      if isTaken {
        channel.flush()
        channel.isWritable = true
        channel.pipeline.fireChannelWritabilityChanged()
      }
      channel.embeddedEventLoop.advanceTime(by: .seconds(60))
      #expect(channel.isActive == isTaken)
    }
  }

  @Test(arguments: [true, false])
  func `an answer that is taken a little at a time is given up, and one that is taken slowly is not`(isSlow: Bool)
    throws
  {
    let portion = isSlow ? 60 * Int(ConnectionGuard.leastRate) : 60 * Int(ConnectionGuard.leastRate) - 1
    let channel = try Self.waiting(portion)
    for minute in 0..<10 {
      // It takes what there is, and there is more: the connection is as good as never at rest.
      channel.flush()
      channel.isWritable = true
      channel.pipeline.fireChannelWritabilityChanged()
      channel.write(HTTPResponsePart.body(ByteBuffer(repeating: 7, count: portion)), promise: nil)
      channel.isWritable = false
      channel.pipeline.fireChannelWritabilityChanged()
      channel.embeddedEventLoop.advanceTime(by: .seconds(60))
      #expect(channel.isActive == isSlow, "minute \(minute)")
      if !channel.isActive { return }
    }
    // Once it has everything, nobody looks any more.
    channel.flush()
    channel.isWritable = true
    channel.pipeline.fireChannelWritabilityChanged()
    channel.embeddedEventLoop.advanceTime(by: .hours(1))
    #expect(channel.isActive)
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
