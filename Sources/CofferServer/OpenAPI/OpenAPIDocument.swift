internal import CofferPolicy
internal import Hummingbird

/// The API as an OpenAPI 3.1 document, made from the routes that answer and their descriptions.
struct OpenAPIDocument {
  let json: JSONValue

  /// - Parameter cookie: the name of the session's cookie.
  init(_ routes: [Route], cookie: String) {
    var paths: [String: [String: JSONValue]] = [:]
    for route in routes {
      guard let description = RouteDescriptions.all[Self.name(of: route)] else { continue }
      let operation = OpenAPIOperation(route: route, description: description).json
      paths[route.path.description, default: [:]][route.method.rawValue.lowercased()] = operation
    }
    json = .object([
      "openapi": .string("3.1.0"),
      "info": .object([
        "title": .string("Coffer policy server"), "version": .string("1"),
        "description": .string(
          "Every GET answers HEAD, too. A method that is not described is refused with 405, and with Allow. What is "
            + "another company's is answered like what is absent."),
        "license": .object(["name": .string("Apache-2.0"), "identifier": .string("Apache-2.0")]),
      ]),
      "servers": .array([.object(["url": .string("/")])]),
      "paths": .object(paths.mapValues(JSONValue.object)),
      "components": .object([
        "schemas": .object(
          Dictionary(uniqueKeysWithValues: Schemas.named.map { ($0.key.title, $0.value.json) })),
        "securitySchemes": .object(Self.securitySchemes(cookie: cookie)),
        "headers": .object(Self.headers),
      ]),
    ])
  }

  /// How descriptions name a route.
  static func name(of route: Route) -> String { "\(route.method.rawValue) \(route.path.description)" }

  private static func securitySchemes(cookie: String) -> [String: JSONValue] {
    func bearer(_ text: String) -> JSONValue {
      .object(["type": .string("http"), "scheme": .string("bearer"), "description": .string(text)])
    }
    return [
      "apiToken": bearer("A program's token, coffer_api_…, limited to its scopes."),
      "deviceToken": bearer("A device's token, coffer_device_…, of a quarter of an hour."),
      "operator": bearer("The secret of the server's operator."),
      "session": .object([
        "type": .string("apiKey"), "in": .string("cookie"), "name": .string(cookie),
        "description": .string("A person who signed in."),
      ]),
      "csrfToken": .object([
        "type": .string("apiKey"), "in": .string("header"), "name": .string("X-CSRF-Token"),
        "description": .string(
          "The session's csrfToken, with every change by cookie, beside Sec-Fetch-Site or Origin of this server."),
      ]),
    ]
  }

  private static let headers: [String: JSONValue] = [
    "ETag": header("A strong entity tag, for If-Match and If-None-Match.", .text(pattern: "^\"[0-9a-f]+\"$")),
    "Location": header("Where it is.", .text()),
    "Retry-After": header("Seconds.", .text(pattern: "^[0-9]+$")),
    "WWW-Authenticate": header("RFC 6750.", .text()),
    "Set-Cookie": header("The session's cookie, given or taken away.", .text()),
    "Cache-Control": header("Nothing may be kept by others.", .constant(.string("no-store"))),
    "X-Content-Type-Options": header("Nothing is what it is not called.", .constant(.string("nosniff"))),
  ]

  private static func header(_ text: String, _ schema: Schema) -> JSONValue {
    .object(["description": .string(text), "schema": schema.json])
  }
}
