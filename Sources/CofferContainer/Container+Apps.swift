public import CofferFiles
internal import CofferPolicy
internal import CofferVault

/// Apps, and what reaches them.
extension Container {
  /// The apps that are known on this device.
  ///
  /// - Parameter containers: the folder of the apps' containers.
  public func apps(containers: String) -> AppRegistry {
    AppRegistry(settings: VaultSettings(vault: vault), containers: containers)
  }

  /// Open-In: gives an installed app a copy of its own and returns the copy's path, in bytes.
  ///
  /// Identity, content and decision come before the first byte: the app's manifest and executable are verified as they
  /// are now, the content type and the copy come from one snapshot, and when the copy is complete the file's version and
  /// the decision are asked again before it gets its name. A refusal leaves nothing.
  public func share(_ path: VaultPath, with bundleId: String, in registry: AppRegistry) throws -> [UInt8] {
    try ContainerError.catching {
      guard let name = path.lastName else { throw VaultError.isADirectory }
      let app = try registry.app(bundleId)
      try app.verifyUnchanged()
      let snapshot = try vault.snapshot(of: path)
      let facts = try facts(of: snapshot, at: path)
      let actor = Request.Actor.app(app.requesting)
      try gate.check(actor, .openIn, file: { facts })
      return try OpenInDelivery().deliver(
        SnapshotReader(snapshot: snapshot), named: name, to: registry.container(of: app),
        stillCurrent: {
          try gate.check(actor, .openIn, file: { facts }, isRepeated: true)
          return try vault.isCurrent(snapshot, at: path)
        })
    }
  }

  /// Which of the installed apps may receive a copy of some type of file, as policy stands: the extensions for each.
  public func approvedExtensions(of app: InstalledApp) -> [String]? {
    guard case .enrolled(let enrolment) = gate.state else { return nil }
    let approvals = enrolment.policy.apps.filter { approval in
      approval.identity == app.verified.identity && approval.actions.contains(.openIn)
        && (approval.teamKey == nil || approval.teamKey == app.verified.teamKey)
        && (approval.teamKey != nil || enrolment.policy.settings.allowFilteredTier)
    }
    return Set(approvals.flatMap(\.extensions)).sorted()
  }
}

extension InstalledApp {
  /// The app as policy sees it. Its manifest is proved by its team's key, but nothing confines it here.
  var requesting: RequestingApp {
    RequestingApp(
      identity: verified.identity, version: manifest.version, teamKey: verified.teamKey, tier: .mediated)
  }
}

/// The vault's sealed settings, each change durable when it returns.
struct VaultSettings: SealedSettings {
  let vault: Vault

  func value(_ name: String) throws -> [UInt8]? { try vault.setting(name) }

  func set(_ name: String, _ value: [UInt8]?) throws {
    try vault.setSetting(name, to: value)
    try vault.commitNames()
  }

  func names(prefix: String) throws -> [String] { try vault.settingNames(prefix: prefix) }
}
