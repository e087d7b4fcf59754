/// A rule widens (`permit`) or narrows (`forbid`) what approved apps may do; a `forbid` binds the owner too.
///
/// A scope that is absent means *any*; an empty list is not a scope and is refused. The rule applies when every scope
/// that is present matches and every condition holds.
public struct Rule: Codable, Hashable, Sendable {
  public enum Effect: String, Codable, CaseIterable, Sendable {
    case permit, forbid
  }

  public var id: String
  public var effect: Effect
  public var actions: [Action]?
  public var apps: [AppIdentity]?
  /// Lower case, without the dot.
  public var extensions: [String]?
  /// Ids of ``Policy/classifications``.
  public var classifications: [String]?
  /// One of them suffices.
  public var groups: [String]?
  public var conditions: [Condition]

  public init(
    id: String, effect: Effect, actions: [Action]? = nil, apps: [AppIdentity]? = nil, extensions: [String]? = nil,
    classifications: [String]? = nil, groups: [String]? = nil, conditions: [Condition] = []
  ) {
    self.id = id
    self.effect = effect
    self.actions = actions
    self.apps = apps
    self.extensions = extensions
    self.classifications = classifications
    self.groups = groups
    self.conditions = conditions
  }
}
