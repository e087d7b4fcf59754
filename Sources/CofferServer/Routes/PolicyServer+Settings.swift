internal import CofferPolicy
internal import HTTPTypes
internal import Hummingbird

/// What a company set for all its devices.
extension PolicyServer {
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

  @Sendable func showSettings(_ call: Call, _ caller: Caller) async throws -> Response {
    let tenant = try await store.read { try $0.tenant(id: caller.tenant) }
    return try Self.response(found(tenant).settings)
  }

  @Sendable func replaceSettings(_ call: Call, _ caller: Caller) async throws -> Response {
    let settings = try call.strict(SettingsBody.self).settings()
    try await commit(caller) { change in
      var tenant = try found(change.transaction.tenant(id: caller.tenant))
      try call.demandMatch(Self.tag(tenant.settings))
      // The configuration profile is a resource of its own.
      var settings = settings
      settings.managed = tenant.settings.managed
      guard settings != tenant.settings else { return }
      try TwoPeople.demandNarrowing(TwoPeople.widens(from: tenant.settings, to: settings), in: change)
      let old = Self.shown(tenant.settings)
      tenant.settings = settings
      try change.transaction.update(tenant)
      let actions = settings.ownerActions.map(\.rawValue).joined(separator: " ")
      try change.record(
        .settingsChanged, nil, ["ownerActions": actions, "allowFilteredTier": "\(settings.allowFilteredTier)"],
        from: old, to: Self.shown(settings))
      change.isPolicyChanged = true
    }
    return Self.response(settings)
  }

  private struct GraceBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case warnAfter, blockAfter }
    /// Seconds.
    let warnAfter: Int64
    let blockAfter: Int64
  }

  @Sendable func showGrace(_ call: Call, _ caller: Caller) async throws -> Response {
    Self.response(try found(await store.read { try $0.tenant(id: caller.tenant) }).grace)
  }

  @Sendable func replaceGrace(_ call: Call, _ caller: Caller) async throws -> Response {
    let body = try call.strict(GraceBody.self)
    let grace = Grace(warnAfter: body.warnAfter, blockAfter: body.blockAfter)
    try await commit(caller) { change in
      var tenant = try found(change.transaction.tenant(id: caller.tenant))
      try call.requireMatch(Self.tag(tenant.grace))
      guard grace != tenant.grace else { return }
      try TwoPeople.demandNarrowing(TwoPeople.widens(from: tenant.grace, to: grace), in: change)
      let old = tenant.grace
      tenant.grace = grace
      try change.transaction.update(tenant)
      try change.record(
        .settingsChanged, nil, ["warnAfter": "\(grace.warnAfter)", "blockAfter": "\(grace.blockAfter)"],
        from: old, to: grace)
      change.isPolicyChanged = true
    }
    return Self.response(grace)
  }

  private static func response(_ grace: Grace) -> Response {
    .json(grace, headers: [.eTag: tag(grace).description])
  }

  static func tag(_ grace: Grace) -> EntityTag { EntityTag(of: Response.encoded(grace)) }

  static func tag(_ settings: Settings) -> EntityTag { EntityTag(of: Response.encoded(shown(settings))) }

  private static func response(_ settings: Settings) -> Response {
    .json(shown(settings), headers: [.eTag: tag(settings).description])
  }

  private static func shown(_ settings: Settings) -> Settings {
    Settings(ownerActions: settings.ownerActions, allowFilteredTier: settings.allowFilteredTier)
  }
}
