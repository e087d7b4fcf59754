import CofferPolicy
import Foundation
import HTTPTypes
import Hummingbird
import Testing

@testable import CofferServer

/// The document that the server serves, held to the routes that answer. Scripts/test-openapi holds the answers to it.
@Suite struct OpenAPITests {
  private static func routes() throws -> [Route] { try Harness().server.routes }

  @Test func `each route is described, and nothing else is`() throws {
    let names = try Set(Self.routes().map(OpenAPIDocument.name))
    #expect(names.subtracting(RouteDescriptions.all.keys).isEmpty)
    #expect(Set(RouteDescriptions.all.keys).subtracting(names).isEmpty)
  }

  @Test func `each schema is there, and is used`() throws {
    #expect(Set(Schemas.named.keys) == Set(Schemas.Name.allCases))
    let text = String(
      decoding: Response.encoded(try OpenAPIDocument(Self.routes(), cookie: "coffer").json), as: UTF8.self)
    for name in Schemas.Name.allCases {
      let isUsed = text.contains(##""#/components/schemas/\##(name.title)""##)
      #expect(isUsed, "\(name)")
    }
  }

  @Test func `a body is described where the route takes one, and only there`() throws {
    for route in try Self.routes() {
      let description = try #require(RouteDescriptions.all[OpenAPIDocument.name(of: route)])
      if case .none = route.body { #expect(description.takes == nil) } else { #expect(description.takes != nil) }
      #expect(description.gives == nil || route.answer == .json)
    }
  }

  @Test func `whoever may call is named, and a change by cookie needs the session's token`() throws {
    let document = OpenAPIDocument(try Self.routes(), cookie: "coffer").json
    for route in try Self.routes() {
      let operation = try #require(document[OpenAPIDocument.name(of: route)])
      guard case .object(let members) = operation, case .array(let ways)? = members["security"] else {
        Issue.record("no security")
        continue
      }
      switch route.access {
      case .anyone: #expect(ways.isEmpty || route.path.description == "/metrics")
      case .device: #expect(ways == [.object(["deviceToken": .array([])])])
      case .administration, .person:
        for case .object(let way) in ways where way["session"] != nil {
          #expect((way["csrfToken"] != nil) == (route.method != .get))
        }
      }
    }
  }

  @Test func `it is served to anyone, as OpenAPI 3.1`() async throws {
    let reply = try await Harness().send(.get, "/v1/openapi.json")
    #expect(reply.status == 200 && reply.headers[.contentType] == "application/json")
    guard case .object(let members) = try reply.json(JSONValue.self) else { throw HTTPProblem.notFound }
    #expect(members["openapi"] == .string("3.1.0"))
  }
}

extension JSONValue {
  /// An operation by method and path, as routes have them.
  fileprivate subscript(name: String) -> JSONValue? {
    let parts = name.split(separator: " ").map(String.init)
    guard case .object(let document) = self, case .object(let paths)? = document["paths"],
      case .object(let operations)? = paths[parts[1]]
    else { return nil }
    return operations[parts[0].lowercased()]
  }
}
