/// The bounds of a policy. They hold for whoever issues one and for whoever receives one.
extension Policy {
  static let maximumApps = 10_000
  static let maximumRules = 10_000
  static let maximumList = 1_000
  static let maximumYears: Int64 = 10

  /// Throws ``PolicyRefusal`` unless the policy is of a known schema, within its bounds and consistent in itself.
  public func validate() throws(PolicyRefusal) {
    guard schema == Policy.currentSchema else { throw .unsupportedSchema(schema) }
    try demand(!hasCommands, "commands")
    try demand(PolicyText.isIdentifier(tenant), "tenant")
    try demand(PolicyText.isIdentifier(audience), "audience")
    try demand(revision > 0 && keyEpoch > 0, "revision or key epoch")
    try demand(issuedAt >= 0 && notAfter > issuedAt, "times")
    try demand(prevHash.map(PolicyText.isDigest) ?? true, "prevHash")
    try validateGrace()
    try validateFileTypes()
    try validateClassifications()
    try validateApps()
    try validateRules()
    try demand(PolicyText.isSet(settings.ownerActions), "ownerActions")
    // Values are read one by one: a device takes a policy with settings that it does not know.
    let managed = settings.managed ?? [:]
    try demand(
      managed.count <= ManagedSettings.maximumCount && managed.keys.allSatisfy(PolicyText.isIdentifier), "managed")
  }

  private func demand(_ condition: Bool, _ what: String) throws(PolicyRefusal) {
    if !condition { throw .malformed(what) }
  }

  private func validateGrace() throws(PolicyRefusal) {
    let longest = Self.maximumYears * 366 * 86_400
    try demand(grace.warnAfter > 0 && grace.warnAfter <= grace.blockAfter && grace.blockAfter <= longest, "grace")
  }

  private func validateFileTypes() throws(PolicyRefusal) {
    try demand(fileTypes.count <= Self.maximumList && PolicyText.isSet(fileTypes.map(\.extension)), "fileTypes")
    for type in fileTypes {
      let isNew = PolicyText.isExtension(type.extension) && !ContentType.isBuiltIn(type.extension)
      try demand(isNew && (1...20).contains(type.mediaTypes.count), "fileTypes")
      try demand(type.mediaTypes.allSatisfy(PolicyText.isMediaType), "fileTypes")
    }
  }

  private func validateClassifications() throws(PolicyRefusal) {
    try demand(classifications.count <= Self.maximumList, "classifications")
    try demand(PolicyText.isSet(classifications.map(\.id)), "classifications")
    try demand(
      classifications.allSatisfy { PolicyText.isIdentifier($0.id) && PolicyText.isName($0.name) }, "classifications")
  }

  private func validateApps() throws(PolicyRefusal) {
    try demand(apps.count <= Self.maximumApps && PolicyText.isSet(apps.map(\.id)), "apps")
    for app in apps {
      try demand(PolicyText.isIdentifier(app.id) && PolicyText.isName(app.name), "apps")
      try demand(PolicyText.isApp(app.identity), "apps")
      // Without a key, the claim of a team is only a claim.
      try demand(app.teamKey != nil || app.tier == .filtered, "tier of an app without a team key")
      try demand(
        app.extensions.count <= Self.maximumList && app.extensions.allSatisfy(PolicyText.isExtension), "extensions")
      try demand(PolicyText.isSet(app.extensions) && PolicyText.isSet(app.actions), "apps")
    }
  }

  private func validateRules() throws(PolicyRefusal) {
    try demand(rules.count <= Self.maximumRules && PolicyText.isSet(rules.map(\.id)), "rules")
    let known = Set(classifications.map(\.id))
    for rule in rules {
      try demand(PolicyText.isIdentifier(rule.id), "rules")
      try demand(rule.conditions.count <= 20, "conditions")
      try demand(isScope(rule.actions) { _ in true }, "actions of a rule")
      try demand(isScope(rule.apps, PolicyText.isApp), "apps of a rule")
      try demand(isScope(rule.extensions, PolicyText.isExtension), "extensions of a rule")
      try demand(isScope(rule.classifications) { known.contains($0) }, "classifications of a rule")
      try demand(isScope(rule.groups, PolicyText.isIdentifier), "groups of a rule")
    }
  }

  /// Absent, or a list with something in it: an empty one could be read as *any* or as *none*.
  private func isScope<Value: Hashable>(_ values: [Value]?, _ isValid: (Value) -> Bool) -> Bool {
    guard let values else { return true }
    return (1...Self.maximumList).contains(values.count) && PolicyText.isSet(values) && values.allSatisfy(isValid)
  }
}
