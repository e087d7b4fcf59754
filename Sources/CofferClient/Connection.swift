internal import AsyncHTTPClient
internal import CofferAPI
internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL

/// HTTP with one company's server, under the rules that hold for every exchange: certificate, host name and dates are
/// verified; no redirect is followed; answers are bounded in size and time.
struct Connection: Sendable {
  /// An answer that may be looked at: its status is one that the caller named.
  struct Answer {
    let status: Int
    /// Without parameters.
    let mediaType: String?
    let body: [UInt8]

    /// What an answer of Coffer's server says is wrong, by its stable type; nil for one that others may have given: a
    /// proxy on the way, for one.
    var problem: String? {
      guard mediaType == Problem.mediaType, let problem = try? JSONDecoder().decode(Problem.self, from: Data(body)),
        problem.status == status
      else { return nil }
      return problem.type
    }

    /// Throws ``ClientError/unexpectedAnswer(status:)`` when the body is anything else.
    func decoded<Value: Decodable>(_ type: Value.Type) throws(ClientError) -> Value {
      guard let value = try? JSONDecoder().decode(type, from: Data(body)) else {
        throw .unexpectedAnswer(status: status)
      }
      return value
    }
  }

  private let http: HTTPClient
  private let server: ServerAddress
  private let timeout: Timeout

  /// Opens a client for `server`, lends it to `body`, and closes it.
  ///
  /// - Parameter timeout: for each exchange, from the first byte to the last; of a stream, for its head. A third of it is
  ///   for connecting: an address where nobody answers is told sooner.
  static func with<Result: Sendable>(
    _ server: ServerAddress, pinned: PinnedCertificate?, timeout: Timeout,
    _ body: (Connection) async throws(ClientError) -> Result
  ) async throws(ClientError) -> Result {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.minimumTLSVersion = .tlsv12
    tls.certificateVerification = .fullVerification
    if let pinned { tls.trustRoots = .certificates([pinned.certificate]) }
    var configuration = HTTPClient.Configuration(
      tlsConfiguration: tls, redirectConfiguration: .disallow,
      timeout: .init(connect: .nanoseconds(Int64(timeout.duration / .nanoseconds(3)))))
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.httpVersion = .http1Only
    // Plain HTTP is allowed to this machine, so its name must not be resolved to another.
    if !server.isSecure { configuration.dnsOverride = ["localhost": "127.0.0.1"] }
    // The same TLS on every platform.
    let http = HTTPClient(
      eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton), configuration: configuration)
    do throws(ClientError) {
      let result = try await body(Connection(http: http, server: server, timeout: timeout))
      try? await http.shutdown()
      return result
    } catch {
      try? await http.shutdown()
      throw error
    }
  }

  enum Method { case get, post, put }

  /// Sends one request and reads the whole answer.
  ///
  /// - Parameters:
  ///   - method: a POST when there is a body and otherwise a GET, unless given.
  ///   - expected: the statuses that the caller understands; any other is an error.
  ///   - limit: the largest body, in bytes.
  func send(
    _ path: String, _ method: Method? = nil, headers: [(String, String)], body: [UInt8]? = nil, expected: Set<Int>,
    limit: Int
  ) async throws(ClientError) -> Answer {
    var request = HTTPClientRequest(url: server.base + path)
    request.method =
      switch method ?? (body == nil ? .get : .post) {
      case .get: .GET
      case .post: .POST
      case .put: .PUT
      }
    request.headers = HTTPHeaders([("accept", "application/json"), ("user-agent", "coffer")] + headers)
    if let body { request.body = .bytes(ByteBuffer(bytes: body)) }
    let answer = try await exchange(request, limit: limit)
    try Self.demand(answer.status, in: expected)
    return answer
  }

  /// Sends one GET, and gives every piece of an answer that has no end to `take`, until the server ends it or the task
  /// is cancelled.
  func stream(
    _ path: String, headers: [(String, String)], didOpen: () -> Void, _ take: (ByteBufferView) throws -> Void
  ) async throws(ClientError) {
    var request = HTTPClientRequest(url: server.base + path)
    request.headers = HTTPHeaders([("accept", "text/event-stream"), ("user-agent", "coffer")] + headers)
    do {
      let response = try await http.execute(request, timeout: .nanoseconds(Int64(timeout.duration / .nanoseconds(1))))
      let status = Int(response.status.code)
      if status == 401 || status == 403 { throw ClientError.deviceRefused }
      try Self.demand(status, in: [200])
      guard response.headers.first(name: "content-type")?.hasPrefix("text/event-stream") == true else {
        throw ClientError.unexpectedAnswer(status: status)
      }
      didOpen()
      for try await piece in response.body { try take(piece.readableBytesView) }
    } catch {
      throw ClientError(exchange: error)
    }
  }

  private static func demand(_ status: Int, in expected: Set<Int>) throws(ClientError) {
    if expected.contains(status) { return }
    // 304 points nowhere; it is only an answer that nobody asked for.
    let isRedirect = (300..<400).contains(status) && status != 304
    throw isRedirect ? .redirected(status: status) : .unexpectedAnswer(status: status)
  }

  /// The library's deadline ends with the head of the answer; this one holds for the body too.
  private func exchange(_ request: HTTPClientRequest, limit: Int) async throws(ClientError) -> Answer {
    do {
      return try await withThrowingTaskGroup(of: Answer.self) { group in
        group.addTask { [http] in
          let response = try await http.execute(request, deadline: .distantFuture)
          let body = try await response.body.collect(upTo: limit)
          let type = response.headers.first(name: "content-type")?.prefix { $0 != ";" && $0 != " " }
          return Answer(
            status: Int(response.status.code), mediaType: type.map { $0.lowercased() }, body: Array(buffer: body))
        }
        group.addTask { [timeout] in
          try await timeout.wait(timeout.duration)
          throw ClientError.unreachable
        }
        defer { group.cancelAll() }
        guard let answer = try await group.next() else { throw ClientError.unreachable }
        return answer
      }
    } catch {
      throw ClientError(exchange: error)
    }
  }
}

extension ClientError {
  /// What an error of the libraries means. Nothing of its text is kept: it may hold what was sent.
  init(exchange error: any Error) {
    switch error {
    case let error as ClientError: self = error
    case is NIOTooManyBytesError, is EventParser.Malformed: self = .oversizedAnswer
    case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError: self = .untrusted
    default: self = .unreachable
    }
  }
}
