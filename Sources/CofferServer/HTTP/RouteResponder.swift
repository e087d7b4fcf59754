internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// Runs one route. The order is the same for all: accepted types, who is calling, may they, content type, size; only
/// then is a byte of the body looked at. Who is calling is asked again when the body is there.
struct RouteResponder: HTTPResponder {
  typealias Context = ServerContext

  let route: Route
  let authentication: Authentication

  func respond(to request: Request, context: ServerContext) async throws -> Response {
    guard Negotiation.accepts(route.answer.rawValue, request.headers[values: .accept]) else {
      throw HTTPProblem(.notAcceptable, "This answers in \(route.answer.rawValue).")
    }
    switch route.access {
    case .anyone(let handler):
      try authentication.demandNotElsewhere(request)
      let call = try await call(request, context)
      return try await asking(as: nil, call) { try await handler(call) }
    case .administration(let permission, let handler):
      let (call, caller) = try await call(request, context) {
        try await authentication.caller(of: request, permission: permission)
      }
      return try await asking(as: caller.tenant, call) { try await handler(call, caller) }
    case .person(let permission, let handler):
      let (call, person) = try await call(request, context) {
        let person = try await authentication.person(of: request)
        if let permission, !person.administrator.role.permissions.contains(permission) {
          throw HTTPProblem.forbidden(permission)
        }
        return person
      }
      return try await asking(as: person.administrator.tenant, call) { try await handler(call, person) }
    case .device(let handler):
      let (call, device) = try await call(request, context) { try await authentication.device(of: request) }
      return try await asking(as: device.tenant, call) { try await handler(call, device) }
    }
  }

  private func call(_ request: Request, _ context: ServerContext) async throws -> Call {
    Call(
      request: request, parameters: context.parameters, body: try await body(of: request), channel: context.channel,
      address: context.address)
  }

  /// The request with the proof of who calls. It is asked for before the body, so that nobody unknown makes the server
  /// wait for one; and anew after it, because a body may take a minute, in which a token is withdrawn.
  private func call<Proof>(
    _ request: Request, _ context: ServerContext, _ authenticate: () async throws -> Proof
  ) async throws -> (Call, Proof) {
    let early = try await authenticate()
    let call = try await call(request, context)
    if case .none = route.body { return (call, early) }
    return (call, try await asking(as: nil, call, authenticate))
  }

  /// Lets `body` wait for the store as `company`, with what the call holds meanwhile.
  private func asking<Value>(
    as company: String?, _ call: Call, _ body: () async throws -> Value
  ) async throws -> Value {
    try await StoreLine.asking(as: company, holding: call.body.count, body)
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
