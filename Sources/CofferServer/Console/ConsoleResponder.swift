internal import CofferSystem
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// Answers one route of the console. Every page and every form passes here: who is it, from which page does it come,
/// may they; only then is anything done. Nothing else calls what a route does.
struct ConsoleResponder: HTTPResponder {
  typealias Context = ServerContext

  /// Bytes of a form.
  private static let formLimit = 64 << 10

  let route: ConsoleRoute
  let console: Console
  let authentication: Authentication

  func respond(to request: Request, context: ServerContext) async throws -> Response {
    var response: Response
    do {
      response = try await answer(request, context)
    } catch let problem as HTTPProblem where problem.name == .unauthorized {
      response = ConsoleResponse.redirect(to: "/console/sign-in")
    } catch {
      guard let problem = console.problem(error) else { throw error }
      response = console.problemPage(problem, visit(request, context, nil, "", .empty))
    }
    ConsoleResponse.secure(&response, isSecure: console.server.site.isSecure)
    return response
  }

  private func answer(_ request: Request, _ context: ServerContext) async throws -> Response {
    switch route.access {
    case .asset(let asset): return asset.response(to: request)
    case .redirect(let link): return ConsoleResponse.redirect(to: link)
    case .open(let page):
      let visit = try await visit(request, context, nil, query(request))
      return try await console.response(page(visit), visit)
    case .openChange(let change):
      try authentication.demandOwnPage(request)
      let form = try await form(request)
      return try await StoreLine.asking(as: nil, holding: form.byteCount) {
        try await perform(change, visit(request, context, nil, form.values))
      }
    case .page(let permission, let page):
      return try await asVisitor(request, permission) { visitor in
        let visit = try await visit(request, context, visitor, query(request))
        return try await console.response(page(visit), visit)
      }
    case .other(let permission, let body):
      return try await asVisitor(request, permission) { visitor in
        try await body(visit(request, context, visitor, query(request)))
      }
    case .stream(let body):
      return try await asVisitor(request, nil, isLook: true) { visitor in
        try await body(visit(request, context, visitor, query(request)))
      }
    case .change(let permission, let change):
      return try await asSender(request, permission) { visitor, values in
        try await perform(change, visit(request, context, visitor, values))
      }
    case .otherChange(let permission, let body):
      return try await asSender(request, permission) { visitor, values in
        try await body(visit(request, context, visitor, values))
      }
    }
  }

  /// - Parameter isLook: a page asks by itself, as it does when it looks for news: no sign that somebody sits before it.
  private func asVisitor<Value>(
    _ request: Request, _ permission: Permission?, isLook: Bool = false, _ body: (SignedIn) async throws -> Value
  ) async throws -> Value {
    let isLook = isLook || request.headers.contains(.refresh)
    let visitor = try permitted(try await authentication.session(of: request, isUse: !isLook), permission)
    return try await StoreLine.asking(as: visitor.administrator.tenant, holding: 0) { try await body(visitor) }
  }

  /// Who sent a form. It has to come from a page of this origin and carry the token of its session.
  private func asSender<Value>(
    _ request: Request, _ permission: Permission?, _ body: (SignedIn, FormValues) async throws -> Value
  ) async throws -> Value {
    let early = try await authentication.session(of: request, isUse: true)
    try authentication.demandOwnPage(request)
    let form = try await form(request)
    return try await StoreLine.asking(as: early.administrator.tenant, holding: form.byteCount) {
      // The form may have taken a minute, in which the session was ended.
      let visitor = try await authentication.session(of: request, isUse: true)
      try authentication.demandToken(form.values.all("csrf"), of: visitor)
      return try await body(try permitted(visitor, permission), form.values)
    }
  }

  private func permitted(_ visitor: SignedIn, _ permission: Permission?) throws -> SignedIn {
    if let permission, !visitor.administrator.role.permissions.contains(permission) {
      throw HTTPProblem.forbidden(permission)
    }
    return visitor
  }

  private func perform(_ change: ConsoleRoute.Change, _ visit: Visit) async throws -> Response {
    do {
      switch try await change.perform(visit) {
      case .see(let link, let notice): return ConsoleResponse.redirect(to: link, notice: notice)
      case .leave(let link, let cookie): return ConsoleResponse.redirect(to: link, cookie: cookie)
      case .show(let page): return console.response(page, visit)
      case .file(let answer): return answer
      }
    } catch {
      guard let problem = console.problem(error), problem.name != .notFound, problem.name != .unauthorized else {
        throw error
      }
      var refused = visit
      refused.refusal = Visit.Refusal(problem: problem, values: visit.values)
      return try await console.response(change.page(refused), refused, status: problem.name.status, problem.headers)
    }
  }

  private func visit(
    _ request: Request, _ context: ServerContext, _ visitor: SignedIn?, _ values: FormValues
  ) async throws -> Visit {
    guard let visitor else { return visit(request, context, nil, "", values) }
    let company = try await console.server.store.read { try $0.tenant(id: visitor.administrator.tenant)?.name }
    return visit(request, context, visitor, company ?? "", values)
  }

  private func visit(
    _ request: Request, _ context: ServerContext, _ visitor: SignedIn?, _ company: String, _ values: FormValues
  ) -> Visit {
    let server = console.server
    return Visit(
      call: Call(
        request: request, parameters: context.parameters, body: [], channel: context.channel,
        address: context.address),
      signedIn: visitor, company: company, values: values,
      mark: visitor.map { server.watchers.mark(of: $0.administrator.tenant) } ?? 0, now: server.time.now().seconds)
  }

  private func query(_ request: Request) throws -> FormValues {
    guard let values = FormValues((request.uri.query ?? "").utf8) else {
      throw HTTPProblem(.malformedRequest, "The address cannot be read.")
    }
    return values
  }

  private func form(_ request: Request) async throws -> (values: FormValues, byteCount: Int) {
    let bytes = try await RouteResponder.body(of: request, as: .applicationUrlEncoded, limit: Self.formLimit)
    guard let values = FormValues(bytes) else { throw HTTPProblem(.malformedRequest, "The form cannot be read.") }
    return (values, bytes.count)
  }
}

extension HTTPField.Name {
  /// Sent by the console's script when it looks for what changed.
  static let refresh = HTTPField.Name("X-Coffer-Refresh")!
}
