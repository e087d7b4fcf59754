internal import CofferPolicy
internal import Hummingbird

/// The configuration profile of a company's devices: `{"passcodeMinimumLength": 8, …}`. It is signed into the policy.
extension PolicyServer {
  @Sendable func showManagedSettings(_ call: Call, _ caller: Caller) async throws -> Response {
    Self.managed(try found(await store.read { try $0.tenant(id: caller.tenant) }).settings)
  }

  /// Replaces the profile: what is not in the body holds no more.
  @Sendable func replaceManagedSettings(_ call: Call, _ caller: Caller) async throws -> Response {
    let values = try call.json([String: JSONValue].self)
    if let (name, reason) = ManagedSettings.fault(in: values) {
      throw HTTPProblem.invalid(PolicyText.isIdentifier(name) ? name : "name", reason)
    }
    let settings = try await commit(caller) { change in
      var tenant = try found(change.transaction.tenant(id: caller.tenant))
      try call.requireMatch(Self.tag(managed: tenant.settings))
      guard values != tenant.settings.managed ?? [:] else { return tenant.settings }
      let (before, old) = (tenant.settings, tenant.settings.managed ?? [:])
      tenant.settings.managed = values.isEmpty ? nil : values
      try tenant.demandEscrowKey()
      try TwoPeople.demandNarrowing(TwoPeople.widens(from: before, to: tenant.settings), in: change)
      try change.transaction.update(tenant)
      try change.record(
        .settingsChanged, nil, ["managed": values.keys.sorted().joined(separator: " ")], from: old, to: values)
      change.isPolicyChanged = true
      return tenant.settings
    }
    return Self.managed(settings)
  }

  static func tag(managed settings: Settings) -> EntityTag {
    EntityTag(of: Response.encoded(settings.managed ?? [:]))
  }

  private static func managed(_ settings: Settings) -> Response {
    .json(settings.managed ?? [:], headers: [.eTag: tag(managed: settings).description])
  }
}
