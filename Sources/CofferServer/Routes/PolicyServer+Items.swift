internal import CofferAPI
internal import CofferPolicy
internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// The apps that a company approved. Every change is signed into a new revision in the same transaction.
extension PolicyServer {
  private static let bodyLimit = 64 << 10

  var itemRoutes: [Route] {
    let body = Route.Body.json(limit: Self.bodyLimit)
    return [
      Route(.get, "/items", .reader(listItems)),
      Route(.post, "/items", body: body, .changer(createItem)),
      Route(.get, "/items/:id", .reader(showItem)),
      Route(.put, "/items/:id", body: body, .changer(replaceItem)),
      Route(.delete, "/items/:id", .changer(deleteItem)),
    ]
  }

  @Sendable private func listItems(_ call: Call, token: APIToken) async throws -> Response {
    let apps = try await store.read { try $0.apps(tenant: token.tenant) }
    return .json(apps.map(Item.init))
  }

  @Sendable private func showItem(_ call: Call, token: APIToken) async throws -> Response {
    let id = try call.id()
    let app = try await store.read { try $0.app(tenant: token.tenant, id: id) }
    return try Self.response(found(app))
  }

  @Sendable private func createItem(_ call: Call, token: APIToken) async throws -> Response {
    let app = try call.strict(ItemBody.self).approval(id: UUID().uuidString.lowercased())
    try await change(token.tenant) { transaction in
      guard try transaction.insert(app, tenant: token.tenant) else { throw Self.alreadyExists }
      return true
    }
    var response = Self.response(app, status: .created)
    response.headers[.location] = "/items/\(app.id)"
    return response
  }

  @Sendable private func replaceItem(_ call: Call, token: APIToken) async throws -> Response {
    let body = try call.strict(ItemBody.self)
    let id = try call.id()
    guard body.id.map({ $0.lowercased() == id }) ?? true else { throw HTTPProblem.invalid("id", "is not the path's") }
    let app = try body.approval(id: id)
    try await change(token.tenant) { transaction in
      let old = try found(transaction.app(tenant: token.tenant, id: id))
      try call.demandMatch(Self.tag(old))
      guard app != old else { return false }
      guard try transaction.update(app, tenant: token.tenant) else { throw Self.alreadyExists }
      return true
    }
    return Self.response(app)
  }

  @Sendable private func deleteItem(_ call: Call, token: APIToken) async throws -> Response {
    let id = try call.id()
    try await change(token.tenant) { transaction in
      try call.demandMatch(Self.tag(found(transaction.app(tenant: token.tenant, id: id))))
      return try transaction.deleteApp(tenant: token.tenant, id: id)
    }
    return .plain(.noContent)
  }

  private static let alreadyExists = HTTPProblem(.alreadyExists, "This bundle id of this team is approved already.")

  private static func tag(_ app: AppApproval) -> EntityTag { EntityTag(of: Response.encoded(Item(app))) }

  private static func response(_ app: AppApproval, status: HTTPResponse.Status = .ok) -> Response {
    .json(Item(app), status: status, headers: [.eTag: tag(app).description])
  }
}
