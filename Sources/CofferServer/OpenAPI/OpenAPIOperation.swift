internal import CofferPolicy
internal import Hummingbird

/// One route in the document: what follows from the route itself, and what its description adds.
struct OpenAPIOperation {
  let route: Route
  let description: RouteDescription

  var json: JSONValue {
    var members: [String: JSONValue] = [
      "summary": .string(description.summary), "operationId": .string(operationID), "responses": .object(responses),
      "security": .array(security.map { .object($0.mapValues { .array($0.map(JSONValue.string)) }) }),
    ]
    let parameters = parameters
    if !parameters.isEmpty { members["parameters"] = .array(parameters) }
    members["requestBody"] = requestBody
    return .object(members)
  }

  private var path: String { route.path.description }
  private var isReading: Bool { route.method == .get }

  private var operationID: String {
    let words = path.split { !$0.isLetter && !$0.isNumber }.map { $0.prefix(1).uppercased() + $0.dropFirst() }
    return route.method.rawValue.lowercased() + words.joined()
  }

  /// The ways in, any of which suffices; what each needs together.
  private var security: [[String: [String]]] {
    let session: [String: [String]] = isReading ? ["session": []] : ["session": [], "csrfToken": []]
    switch route.access {
    case .anyone: return path == "/metrics" ? [["operator": []]] : []
    case .administration(let permission, _): return [["apiToken": [permission.rawValue]], session]
    case .person: return [session]
    case .device: return [["deviceToken": []]]
    }
  }

  private var parameters: [JSONValue] {
    func parameter(_ place: String, _ name: String, required: Bool, _ schema: Schema) -> JSONValue {
      .object([
        "in": .string(place), "name": .string(name), "required": .boolean(required), "schema": schema.json,
      ])
    }
    var all = path.split(separator: "/").filter { $0.hasPrefix("{") }.map {
      parameter("path", String($0.dropFirst().dropLast()), required: true, .text(minimum: 1))
    }
    if description.isPaged {
      all.append(parameter("query", "cursor", required: false, .text("The next of the page before.")))
      all.append(
        parameter("query", "limit", required: false, .integer(minimum: 1, maximum: Int64(PageRequest.maximum))))
    }
    switch description.matching {
    case .required: all.append(parameter("header", "If-Match", required: true, .text()))
    case .honoured: all.append(parameter("header", "If-Match", required: false, .text()))
    case .none, .given: break
    }
    if description.isMaking {
      all.append(
        parameter("header", "Idempotency-Key", required: false, .text(minimum: 1, maximum: 200, pattern: "^[!-~]+$")))
    }
    if isConditional { all.append(parameter("header", "If-None-Match", required: false, .text())) }
    if path == "/v1/devices/{id}" && route.method == .delete {
      all.append(parameter("query", "abandonWipe", required: false, .choice(["true", "false"])))
    }
    if route.answer == .events { all.append(parameter("header", "Last-Event-ID", required: false, .text())) }
    return all
  }

  private var isConditional: Bool { path == "/v1/device/policy" }

  private var requestBody: JSONValue? {
    guard let takes = description.takes else { return nil }
    let type: String
    switch route.body {
    case .none: return nil
    case .json: type = "application/json"
    case .form: type = "application/x-www-form-urlencoded"
    }
    return .object([
      "required": .boolean(true), "content": .object([type: .object(["schema": Schema.reference(takes).json])]),
    ])
  }

  private var responses: [String: JSONValue] {
    var all = Dictionary(
      grouping: Set(problems), by: { $0.status.code }
    ).reduce(into: [String: JSONValue]()) { all, entry in all["\(entry.key)"] = refusal(entry.key, entry.value) }
    all["\(description.status)"] = success
    if isConditional {
      all["304"] = .object(["description": .string("The client has it."), "headers": headers(["ETag"])])
    }
    return all
  }

  private var success: JSONValue {
    var members: [String: JSONValue] = ["description": .string(description.summary + ".")]
    var names: [String] = []
    if description.matching != .none && description.status != 204 && hasTag { names.append("ETag") }
    if path == "/v1/session" && !isReading || path == "/v1/session/password" { names.append("Set-Cookie") }
    members["headers"] = headers(names)
    if description.status != 204 {
      let schema: Schema =
        description.gives.map { .reference($0) }
        ?? (route.answer == .json ? .dictionary(of: .anything) : .text())
      members["content"] = .object([route.answer.rawValue: .object(["schema": schema.json])])
    }
    return .object(members)
  }

  /// A restored revision and a published draft are told by their number alone.
  private var hasTag: Bool { description.gives != .newRevision }

  private func refusal(_ status: Int, _ names: [HTTPProblem.Name]) -> JSONValue {
    let titles = names.map { "\($0.title) (\($0.rawValue))." }.sorted().joined(separator: " ")
    var own: [String] = []
    if names.contains(.unauthorized) && !names.contains(.signInRefused) { own.append("WWW-Authenticate") }
    if status == 429 || status == 503 { own.append("Retry-After") }
    return .object([
      "description": .string(titles), "headers": headers(own),
      "content": .object(["application/problem+json": .object(["schema": Schema.reference(.problem).json])]),
    ])
  }

  private func headers(_ names: [String]) -> JSONValue {
    .object(
      Dictionary(
        uniqueKeysWithValues: (names + ["Cache-Control", "X-Content-Type-Options"]).map {
          ($0, .object(["$ref": .string("#/components/headers/\($0)")]))
        }))
  }

  /// Why this route may refuse.
  private var problems: [HTTPProblem.Name] {
    var all: [HTTPProblem.Name] = description.problems + [.notAcceptable, .internalError, .unavailable]
    if route.body.limit != nil {
      all += [.malformedRequest, .bodyTooLarge, .unsupportedMediaType, .invalidFields]
    }
    switch route.access {
    case .anyone: if !isReading { all.append(.crossSite) }
    case .administration: all += [.unauthorized, .forbidden] + (isReading ? [] : [.crossSite])
    case .person(let permission, _):
      all.append(.unauthorized)
      if permission != nil { all.append(.forbidden) }
      if !isReading { all.append(.crossSite) }
    case .device: all.append(.unauthorized)
    }
    if path.contains("/{") { all.append(.notFound) }
    if description.isPaged { all.append(.invalidFields) }
    if description.isMaking { all += [.malformedRequest, .idempotencyKeyReused] }
    if description.matching == .honoured || description.matching == .required { all.append(.preconditionFailed) }
    if description.matching == .required { all.append(.preconditionRequired) }
    return all
  }
}

extension Route.Body {
  /// Bytes; nil where no body is taken.
  fileprivate var limit: Int? {
    switch self {
    case .none: nil
    case .json(let limit), .form(let limit): limit
    }
  }
}
