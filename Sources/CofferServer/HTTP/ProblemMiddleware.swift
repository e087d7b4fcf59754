internal import CofferCrypto
internal import CofferSystem
internal import HTTPTypes
internal import Hummingbird

/// Turns every error into a problem document, and counts and writes one masked line for each request.
struct ProblemMiddleware: RouterMiddleware {
  typealias Context = ServerContext

  let log: MaskedLog
  let metrics: Metrics

  func handle(
    _ request: Request, context: ServerContext,
    next: @concurrent (Request, ServerContext) async throws -> Response
  ) async throws -> Response {
    let start = ContinuousClock.now
    var response: Response
    do {
      // Until it is known who asks.
      let party = "address \(SignInLimiter.network(of: context.address))"
      response = try await StoreLine.$asker.withValue(StoreLine.Asker(party: party)) {
        try await next(request, context)
      }
    } catch {
      response = problem(for: error).response
    }
    // What a HEAD would show, without the document.
    if request.method == .head { response = response.createHeadResponse() }
    let (path, status) = (context.endpointPath ?? "unknown", response.status.code)
    // A method is the client's word until it is one that is known.
    let method = context.endpointPath == nil ? "any" : request.method.rawValue
    let took = (ContinuousClock.now - start).components
    let seconds = Double(took.seconds) + Double(took.attoseconds) / 1e18
    metrics.count(method: method, route: path, status: status, seconds: seconds)
    log.info("\(public: method) \(public: path): \(public: status)")
    return response
  }

  /// Whatever is not foreseen is the server's fault and says nothing of itself to the caller.
  func problem(for error: any Error) -> HTTPProblem {
    switch error {
    case let problem as HTTPProblem: return problem
    case let error as StoreError:
      metrics.count(.storeFailures)
      log.error("\(public: error)")
      return error == .damagedFile ? .damaged : .unavailable
    case let error as CryptoError where error.isShortage:
      log.error("\(public: error)")
      return .noMemory
    case let error as CryptoError:
      // What the store holds sealed does not open: the store is not what it was.
      metrics.count(.storeFailures)
      log.error("\(public: error)")
      return .unavailable
    case ServerError.policyTooLarge: return HTTPProblem(.policyTooLarge, "\(ServerError.policyTooLarge)")
    case ServerError.policyInvalid(let part): return .invalid(part, "would make a policy that no device accepts")
    case ServerError.tenantExists: return HTTPProblem(.alreadyExists, "A company of this name exists.")
    case ServerError.administratorExists:
      return HTTPProblem(.alreadyExists, "The company has an administrator with this address.")
    case ServerError.invalid(let what): return HTTPProblem(.invalidFields, what)
    case let error as HTTPError where error.status == .notFound: return .notFound
    default:
      log.error("unexpected \(error: error)")
      return .internalError
    }
  }
}
