import Hummingbird
import HummingbirdTLS
import Logging
import NIOCore
import NIOSSL
import ServiceLifecycle
import Synchronization

/// What a client asked.
struct Ask: Sendable {
  var method: String
  var path: String
  var headers: [String: String]
  var body: [UInt8]
}

/// What the server answers, whatever that means for the client.
struct Reply: Sendable {
  var status = 200
  var headers: [String: String] = ["content-type": "application/json"]
  var body: [UInt8] = []
  /// Sends the head and never the body, until the test is over.
  var stalls = false
  /// What is sent bit by bit, in place of a body, until it ends.
  var pieces: AsyncStream<ByteBuffer>?
}

/// A real server on a real socket, with a script for a head.
final class LoopbackServer: Sendable {
  let port: Int
  private let log: Recorder

  /// Everything that was asked, in order.
  var asks: [Ask] { log.asks.withLock { $0 } }
  var paths: [String] { asks.map(\.path) }

  private init(port: Int, log: Recorder) {
    self.port = port
    self.log = log
  }

  private final class Recorder: Sendable {
    let asks = Mutex<[Ask]>([])

    func add(_ ask: Ask) { asks.withLock { $0.append(ask) } }
  }

  /// Runs a server during `body`.
  static func run<Result: Sendable>(
    host: String = "127.0.0.1", tls: TLSConfiguration? = nil, _ answer: @escaping @Sendable (Ask) -> Reply,
    _ body: (LoopbackServer) async throws -> Result
  ) async throws -> Result {
    let (started, startedSource) = AsyncStream.makeStream(of: Int.self)
    let (never, neverSource) = AsyncStream.makeStream(of: ByteBuffer.self)
    let log = Recorder()
    let responder = CallbackResponder<BasicRequestContext> { request, _ in
      let ask = Ask(
        method: request.method.rawValue, path: request.uri.path,
        headers: Dictionary(request.headers.map { ($0.name.canonicalName, $0.value) }) { $1 },
        body: Array(buffer: try await request.body.collect(upTo: 1 << 20)))
      log.add(ask)
      let reply = answer(ask)
      var headers = HTTPFields()
      for (name, value) in reply.headers { headers[.init(name)!] = value }
      return Response(
        status: .init(code: reply.status), headers: headers,
        body: reply.pieces.map { .init(asyncSequence: $0) }
          ?? (reply.stalls ? .init(asyncSequence: never) : .init(byteBuffer: ByteBuffer(bytes: reply.body))))
    }
    let quiet = Logger(label: "loopback") { _ in SwiftLogNoOpLogHandler() }
    let application = Application(
      responder: responder, server: try tls.map { try .tls(.http1(), tlsConfiguration: $0) } ?? .http1(),
      configuration: .init(address: .hostname(host, port: 0)),
      onServerRunning: { startedSource.yield($0.localAddress?.port ?? 0) }, logger: quiet)
    let group = ServiceGroup(configuration: .init(services: [.init(service: application)], logger: quiet))
    async let running: Void? = try? group.run()
    var ports = started.makeAsyncIterator()
    let port = await ports.next()!
    let server = LoopbackServer(port: port, log: log)
    do {
      let result = try await body(server)
      neverSource.finish()
      await group.triggerGracefulShutdown()
      _ = await running
      return result
    } catch {
      neverSource.finish()
      await group.triggerGracefulShutdown()
      _ = await running
      throw error
    }
  }
}
