public import CofferCrypto
public import CofferSystem
internal import HTTPTypes
internal import Hummingbird

/// The policy server: its routes over a store.
public struct PolicyServer: Sendable {
  let store: QueuedStore
  let reads: ReadCache
  let publisher: Publisher
  let sealing: KeySealing
  let administration: Administration
  let passwords: PasswordWorker
  let limiter = SignInLimiter()
  let refusedSignIns = RefusedSignIns()
  let events = EventHub()
  /// The console's open pages.
  let watchers: Watchers
  let metrics = Metrics()
  let openAPI = OpenAPICache()
  let site: Site
  /// SHA-256 of what shows that somebody may read the metrics; without one, nobody may.
  let metricsKey: [UInt8]?
  let time: any TimeSource
  let log: MaskedLog

  /// - Parameters:
  ///   - site: where people reach the server; decides about cookies and about what a page of its own is.
  ///   - passwordCost: log2 of scrypt's cost for passwords.
  ///   - metricsSecret: what `GET /metrics` is asked with as a bearer token.
  public init(
    store: any PolicyStore, serverKey: SecretKey, site: Site = Site(isSecure: false),
    passwordCost: Int = PasswordRecord.costExponent, metricsSecret: SecretBytes? = nil,
    time: any TimeSource = SystemTime(), log: MaskedLog
  ) {
    let store = QueuedStore(store)
    self.store = store
    reads = ReadCache(store)
    self.site = site
    self.time = time
    self.log = log
    watchers = Watchers(start: time.now().seconds << 20)
    metricsKey = metricsSecret.map { $0.withUnsafeBytes { Digest.sha256($0) } }
    sealing = KeySealing(serverKey: serverKey)
    publisher = Publisher(sealing: sealing, time: time)
    administration = Administration(store: store, serverKey: serverKey, time: time)
    passwords = PasswordWorker(costExponent: passwordCost)
  }

  /// The routes, and for each of their paths a refusal of every other method.
  var router: Router<ServerContext> {
    let router = Router(context: ServerContext.self, options: .autoGenerateHeadEndpoints)
    router.add(middleware: ProblemMiddleware(log: log, metrics: metrics))
    let (authentication, console) = (authentication, Console(server: self))
    for route in routes {
      router.on(
        route.path, method: route.method, responder: RouteResponder(route: route, authentication: authentication))
    }
    for route in console.routes {
      router.on(
        route.path, method: route.method,
        responder: ConsoleResponder(route: route, console: console, authentication: authentication))
    }
    let all = routes.map { ($0.path, $0.method) } + console.routes.map { ($0.path, $0.method) }
    for (path, methods) in Dictionary(grouping: all, by: { $0.0.description }).mapValues({ $0.map(\.1) }) {
      let allowed = methods + (methods.contains(.get) ? [.head] : [])
      let refusal = MethodRefusal(allowed: allowed.map(\.rawValue).sorted().joined(separator: ", "))
      for method in Self.methods where !allowed.contains(method) {
        router.on(RouterPath(path), method: method, responder: refusal)
      }
    }
    return router
  }

  var authentication: Authentication { Authentication(store: store, reads: reads, time: time, site: site) }

  /// What is absent and what is another company's end here alike.
  func found<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw HTTPProblem.notFound }
    return value
  }

  private static let methods: [HTTPRequest.Method] = [
    .get, .head, .post, .put, .delete, .patch, .options, .trace, .connect, HTTPRequest.Method("QUERY")!,
  ]

  private struct MethodRefusal: HTTPResponder {
    typealias Context = ServerContext

    let allowed: String

    func respond(to request: Request, context: ServerContext) throws -> Response {
      throw HTTPProblem(.methodNotAllowed, "Allowed here: \(allowed).", headers: [.allow: allowed])
    }
  }
}
