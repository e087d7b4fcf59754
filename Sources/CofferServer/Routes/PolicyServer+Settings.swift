internal import CofferPolicy
internal import HTTPTypes
internal import Hummingbird

/// What a company set for all its devices.
extension PolicyServer {
  private static let bodyLimit = 4 << 10

  var settingsRoutes: [Route] {
    [
      Route(.get, "/v1/settings", .reader(showSettings)),
      Route(.put, "/v1/settings", body: .json(limit: Self.bodyLimit), .changer(replaceSettings)),
    ]
  }

  private struct SettingsBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable {
      case ownerActions, allowFilteredTier
    }

    let ownerActions: [String]
    let allowFilteredTier: Bool

    func settings() throws -> Settings {
      let actions = ownerActions.compactMap { Action(rawValue: $0) }
      guard actions.count == ownerActions.count, Set(actions).count == actions.count else {
        let known = Action.allCases.map(\.rawValue).joined(separator: ", ")
        throw HTTPProblem.invalid("ownerActions", "must be different ones of \(known)")
      }
      return Settings(ownerActions: actions, allowFilteredTier: allowFilteredTier)
    }
  }

  @Sendable private func showSettings(_ call: Call, token: APIToken) async throws -> Response {
    let tenant = try await store.read { try $0.tenant(id: token.tenant) }
    return try Self.response(found(tenant).settings)
  }

  @Sendable private func replaceSettings(_ call: Call, token: APIToken) async throws -> Response {
    let settings = try call.strict(SettingsBody.self).settings()
    try await change(token.tenant) { transaction in
      var tenant = try found(transaction.tenant(id: token.tenant))
      try call.demandMatch(Self.tag(tenant.settings))
      guard settings != tenant.settings else { return false }
      tenant.settings = settings
      try transaction.update(tenant)
      return true
    }
    return Self.response(settings)
  }

  private static func tag(_ settings: Settings) -> EntityTag { EntityTag(of: Response.encoded(settings)) }

  private static func response(_ settings: Settings) -> Response {
    .json(settings, headers: [.eTag: tag(settings).description])
  }
}
