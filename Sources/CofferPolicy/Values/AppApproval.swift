public import CofferCrypto

/// One app that a company approved: for which file types, and for which actions.
public struct AppApproval: Codable, Hashable, Sendable {
  public var id: String
  /// What people call the app.
  public var name: String
  public var bundleId: String
  public var teamId: String
  /// The key that the app's manifest must be signed with. Absent only in the tier *filtered*.
  public var teamKey: VerifyingKey?
  /// The weakest tier in which the approval holds.
  public var tier: Tier
  /// Lower case, without the dot. An empty list approves no file at all.
  public var extensions: [String]
  public var actions: [Action]

  public init(
    id: String, name: String, identity: AppIdentity, teamKey: VerifyingKey?, tier: Tier, extensions: [String],
    actions: [Action]
  ) {
    self.id = id
    self.name = name
    self.bundleId = identity.bundleId
    self.teamId = identity.teamId
    self.teamKey = teamKey
    self.tier = tier
    self.extensions = extensions
    self.actions = actions
  }

  public var identity: AppIdentity { AppIdentity(bundleId: bundleId, teamId: teamId) }

  /// How a decision names this approval.
  public var ruleID: String { "app:\(id)" }
}
