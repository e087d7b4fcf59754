internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// Runs one route. The order is the same for all: accepted types, who is calling, may they, content type, size; only
/// then is a byte of the body looked at.
struct RouteResponder: HTTPResponder {
  typealias Context = ServerContext

  let route: Route
  let authentication: Authentication

  func respond(to request: Request, context: ServerContext) async throws -> Response {
    guard Negotiation.accepts(route.answer.rawValue, request.headers[values: .accept]) else {
      throw HTTPProblem(.notAcceptable, "This answers in \(route.answer.rawValue).")
    }
    func call() async throws -> Call {
      Call(
        request: request, parameters: context.parameters, body: try await body(of: request), channel: context.channel,
        address: context.address)
    }
    switch route.access {
    case .anyone(let handler):
      try authentication.demandNotElsewhere(request)
      return try await handler(call())
    case .administration(let permission, let handler):
      let caller = try await authentication.caller(of: request, permission: permission)
      return try await handler(call(), caller)
    case .person(let permission, let handler):
      let person = try await authentication.person(of: request)
      if let permission, !person.administrator.role.permissions.contains(permission) {
        throw HTTPProblem.forbidden(permission)
      }
      return try await handler(call(), person)
    case .device(let handler):
      let device = try await authentication.device(of: request)
      return try await handler(call(), device)
    }
  }

  private func body(of request: Request) async throws -> [UInt8] {
    switch route.body {
    case .none: return []
    case .json(let limit): return try await Self.body(of: request, as: .applicationJson, limit: limit)
    case .form(let limit): return try await Self.body(of: request, as: .applicationUrlEncoded, limit: limit)
    }
  }

  /// Reads a body of this type, up to `limit` bytes.
  static func body(of request: Request, as type: MediaType, limit: Int) async throws -> [UInt8] {
    guard Negotiation.isContent(request.headers[.contentType], of: type) else {
      throw HTTPProblem(
        .unsupportedMediaType, "Send the body as \(type.description).", headers: [.accept: type.description])
    }
    let tooLarge = HTTPProblem(.bodyTooLarge, "The body may have \(limit) bytes here.")
    if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > limit { throw tooLarge }
    var bytes: [UInt8] = []
    for try await chunk in request.body {
      guard chunk.readableBytes <= limit - bytes.count else { throw tooLarge }
      bytes.append(contentsOf: chunk.readableBytesView)
    }
    return bytes
  }
}
