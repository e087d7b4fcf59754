import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import CofferSystem
import CofferTestSupport
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import CofferServer

/// A clock that tests move.
final class ManualTime: TimeSource {
  private static let boot = [UInt8](repeating: 7, count: BootMoment.bootByteCount)
  private let value = Mutex<Int64>(1_800_000_000)
  private let uptime = Mutex<UInt64>(1_000)

  /// Since 1970.
  var seconds: Int64 { value.withLock { $0 } }
  func now() -> Timestamp { Timestamp(seconds: seconds) }
  func sinceBoot() -> BootMoment { BootMoment(boot: Self.boot, seconds: uptime.withLock { $0 }) }

  /// Time passes.
  func advance(_ count: Int64) {
    value.withLock { $0 += count }
    uptime.withLock { $0 += UInt64(count) }
  }

  /// Somebody sets the clock.
  func set(by count: Int64) { value.withLock { $0 += count } }
}

/// A store that fails when told to, in front of a real one.
final class FaultyStore: PolicyStore {
  private let store: any PolicyStore
  private let failure = Mutex<StoreError?>(nil)
  private let meanwhile = Mutex<(@Sendable (any PolicyStore) async throws -> Void)?>(nil)

  init(_ store: any PolicyStore) { self.store = store }

  func fail(_ error: StoreError?) { failure.withLock { $0 = error } }

  /// Lets `body` happen to the store right before the next change of it.
  func beforeNextWrite(_ body: @escaping @Sendable (any PolicyStore) async throws -> Void) {
    meanwhile.withLock { $0 = body }
  }

  func read<Value: Sendable>(_ body: @Sendable (any StoreTransaction) throws -> Value) async throws -> Value {
    if let error = failure.withLock({ $0 }) { throw error }
    return try await store.read(body)
  }

  func version() throws -> Int64 {
    if let error = failure.withLock({ $0 }) { throw error }
    return try store.version()
  }

  func write<Value: Sendable>(_ body: @Sendable (any StoreTransaction) throws -> Value) async throws -> Value {
    if let error = failure.withLock({ $0 }) { throw error }
    let before = meanwhile.withLock { meanwhile in
      defer { meanwhile = nil }
      return meanwhile
    }
    try await before?(store)
    return try await store.write(body)
  }
}

/// What a request was answered.
struct Reply {
  let status: Int
  let headers: HTTPFields
  let body: [UInt8]

  func json<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    try JSONDecoder().decode(type, from: Data(body))
  }

  /// The name of the problem that the body tells.
  var problem: String? {
    guard headers[.contentType] == CofferAPI.Problem.mediaType, let problem = try? json(CofferAPI.Problem.self),
      problem.status == status
    else { return nil }
    return problem.type.split(separator: ":").last.map(String.init)
  }
}

/// The real routes over the real store in a temporary folder.
final class Harness: Sendable {
  let folder: TemporaryFolder
  let directory: DataDirectory
  let store: SQLitePolicyStore
  let faults: FaultyStore
  let time = ManualTime()
  let administration: Administration
  let server: PolicyServer
  let responder: RouterResponder<ServerContext>

  init() throws {
    folder = try TemporaryFolder()
    directory = try DataDirectory(folder("data"), creating: true)
    store = try SQLitePolicyStore(directory)
    faults = FaultyStore(store)
    administration = Administration(store: faults, serverKey: directory.serverKey, time: time)
    server = PolicyServer(
      store: faults, serverKey: directory.serverKey, passwordCost: 14,
      metricsSecret: SecretsTests.secret("a secret for the operator"), time: time, log: Self.silent)
    responder = server.router.buildResponder()
  }

  static let silent = MaskedLog(logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })

  func company(_ name: String = "Acme") async throws -> Company {
    let tenant = try await administration.createTenant(name: name)
    func token(_ role: Role) async throws -> String {
      try await administration.createToken(tenant: tenant.id, role: role).secret.text
    }
    return Company(
      harness: self, tenant: tenant, owner: try await token(.owner), editor: try await token(.editor),
      auditor: try await token(.auditor))
  }

  func send(
    _ method: HTTPRequest.Method, _ path: String, token: String? = nil, headers: HTTPFields = [:], body: RequestBody,
    through responder: RouterResponder<ServerContext>? = nil
  ) async throws -> Reply {
    var headers = headers
    if let token { headers[.authorization] = "Bearer \(token)" }
    let response = try await respond(method, path, headers: headers, body: body, through: responder)
    let isStream = response.headers[.contentType] == "text/event-stream"
    let collector = Collector()
    if !isStream { try await response.body.write(collector) }
    return Reply(status: response.status.code, headers: response.headers, body: collector.bytes.withLock { $0 })
  }

  /// The answer, before its body is written.
  func respond(
    _ method: HTTPRequest.Method, _ path: String, headers: HTTPFields, body: RequestBody,
    through other: RouterResponder<ServerContext>? = nil
  ) async throws -> Response {
    let head = HTTPRequest(method: method, scheme: "http", authority: "localhost", path: path, headerFields: headers)
    let source = ApplicationRequestContextSource(
      channel: NIOAsyncTestingChannel(), logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
    return try await (other ?? responder).respond(
      to: Request(head: head, body: body), context: ServerContext(source: source))
  }

  func send(
    _ method: HTTPRequest.Method, _ path: String, token: String? = nil, headers: HTTPFields = [:],
    json: String? = nil, type: String = "application/json", through responder: RouterResponder<ServerContext>? = nil
  ) async throws -> Reply {
    var headers = headers
    if json != nil, headers[.contentType] == nil { headers[.contentType] = type }
    return try await send(
      method, path, token: token, headers: headers, body: RequestBody(buffer: ByteBuffer(string: json ?? "")),
      through: responder)
  }

  func current(_ tenant: Tenant) async throws -> Revision {
    try #require(try await store.read { try $0.currentRevision(tenant: tenant.id) })
  }

  private final class Collector: ResponseBodyWriter {
    let bytes = Mutex<[UInt8]>([])

    func write(_ buffer: ByteBuffer) async throws {
      bytes.withLock { $0.append(contentsOf: buffer.readableBytesView) }
    }
    func finish(_ trailingHeaders: HTTPFields?) async throws {}
  }
}
