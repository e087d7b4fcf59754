public import CofferCrypto
public import CofferSystem
internal import HTTPTypes
internal import Hummingbird

/// The policy server: its routes over a store.
public struct PolicyServer: Sendable {
  let store: any PolicyStore
  let publisher: Publisher
  let time: any TimeSource
  let log: MaskedLog

  public init(store: any PolicyStore, serverKey: SecretKey, time: any TimeSource = SystemTime(), log: MaskedLog) {
    self.store = store
    self.time = time
    self.log = log
    publisher = Publisher(sealing: KeySealing(serverKey: serverKey), time: time)
  }

  /// Everything that the server answers.
  var routes: [Route] { itemRoutes + settingsRoutes + inventoryRoutes + enrollmentRoutes + deviceRoutes + healthRoutes }

  /// The routes, and for each of their paths a refusal of every other method.
  var router: Router<BasicRequestContext> {
    let router = Router(context: BasicRequestContext.self, options: .autoGenerateHeadEndpoints)
    router.add(middleware: ProblemMiddleware(log: log))
    let authentication = Authentication(store: store, time: time)
    for route in routes {
      router.on(
        route.path, method: route.method, responder: RouteResponder(route: route, authentication: authentication))
    }
    for (path, routes) in Dictionary(grouping: routes, by: { $0.path.description }) {
      let allowed = routes.map(\.method) + (routes.contains { $0.method == .get } ? [.head] : [])
      let refusal = MethodRefusal(allowed: allowed.map(\.rawValue).sorted().joined(separator: ", "))
      for method in Self.methods where !allowed.contains(method) {
        router.on(RouterPath(path), method: method, responder: refusal)
      }
    }
    return router
  }

  /// Runs `body` and, when it says that something changed, signs the policy anew: both happen, or neither.
  func change(_ tenant: String, _ body: @Sendable (any StoreTransaction) throws -> Bool) async throws {
    let revision = try await store.write { transaction in
      try body(transaction) ? try publisher.publish(found(transaction.tenant(id: tenant)), in: transaction) : nil
    }
    if let revision { log.notice("tenant \(public: tenant): policy revision \(public: revision.number)") }
  }

  /// What is absent and what is another company's end here alike.
  func found<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw HTTPProblem.notFound }
    return value
  }

  private static let methods: [HTTPRequest.Method] = [.get, .head, .post, .put, .delete, .patch, .options, .trace]

  private struct MethodRefusal: HTTPResponder {
    let allowed: String

    func respond(to request: Request, context: BasicRequestContext) throws -> Response {
      throw HTTPProblem(.methodNotAllowed, "Allowed here: \(allowed).", headers: [.allow: allowed])
    }
  }
}
