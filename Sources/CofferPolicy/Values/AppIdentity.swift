/// The name of an app: bundle id and team, never one without the other. Both are compared byte for byte.
public struct AppIdentity: Codable, Hashable, Sendable {
  public var bundleId: String
  public var teamId: String

  public init(bundleId: String, teamId: String) {
    self.bundleId = bundleId
    self.teamId = teamId
  }
}
