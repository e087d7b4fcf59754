internal import CofferSystem
internal import HTTPTypes
internal import Hummingbird

/// Turns every error into a problem document and writes one masked line for each request.
struct ProblemMiddleware: RouterMiddleware {
  let log: MaskedLog

  func handle(
    _ request: Request, context: BasicRequestContext,
    next: @concurrent (Request, BasicRequestContext) async throws -> Response
  ) async throws -> Response {
    var response: Response
    do {
      response = try await next(request, context)
    } catch {
      response = problem(for: error).response
    }
    // What a HEAD would show, without the document.
    if request.method == .head { response = response.createHeadResponse() }
    let (method, path, status) = (request.method.rawValue, context.endpointPath ?? "unknown", response.status.code)
    log.info("\(public: method) \(public: path): \(public: status)")
    return response
  }

  /// Whatever is not foreseen is the server's fault and says nothing of itself to the caller.
  private func problem(for error: any Error) -> HTTPProblem {
    switch error {
    case let problem as HTTPProblem: return problem
    case let error as StoreError:
      log.error("\(public: error)")
      return .unavailable
    case ServerError.policyTooLarge: return HTTPProblem(.policyTooLarge, "\(ServerError.policyTooLarge)")
    case let error as HTTPError where error.status == .notFound: return .notFound
    default:
      log.error("unexpected \(error: error)")
      return .internalError
    }
  }
}
