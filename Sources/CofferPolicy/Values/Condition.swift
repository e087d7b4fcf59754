/// Something that must hold for a rule to apply. With ``isNegated``, something that must not.
///
/// A condition that cannot be evaluated — of an unknown kind, or with a malformed version — is an error: a `permit`
/// with it does not apply, a `forbid` with it denies.
public struct Condition: Hashable, Sendable {
  public enum Test: Hashable, Sendable {
    case deviceUnlocked
    /// The time since the company last confirmed the policy, in seconds.
    case policyAgeAtMost(Int64)
    case osVersion(VersionRange)
    /// False for the owner, who is no app.
    case appVersion(VersionRange)
    case protectionAtLeast(ProtectionLevel)
    case group(String)
    case timeWindow(TimeWindow)
    /// A kind that this version does not know, kept as it came.
    case unknown(JSONValue)
  }

  public var test: Test
  public var isNegated: Bool

  public init(_ test: Test, negated: Bool = false) {
    self.test = test
    isNegated = negated
  }
}

/// On the wire: `{"kind": …, its operands…}`, with `"not": true` for a negated one.
extension Condition: Codable {
  private enum Key: String, CodingKey {
    case kind, not, seconds, atLeast, below, level, group, window
  }

  private enum Kind: String {
    case deviceUnlocked, policyAgeAtMost, osVersion, appVersion, protectionAtLeast, group, timeWindow
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self)
    func range() throws -> VersionRange {
      VersionRange(
        atLeast: try container.decodeIfPresent(String.self, forKey: .atLeast),
        below: try container.decodeIfPresent(String.self, forKey: .below))
    }
    guard let kind = Kind(rawValue: try container.decode(String.self, forKey: .kind)) else {
      self.init(.unknown(try JSONValue(from: decoder)))
      return
    }
    let test: Test =
      switch kind {
      case .deviceUnlocked: .deviceUnlocked
      case .policyAgeAtMost: .policyAgeAtMost(try container.decode(Int64.self, forKey: .seconds))
      case .osVersion: .osVersion(try range())
      case .appVersion: .appVersion(try range())
      case .protectionAtLeast: .protectionAtLeast(try container.decode(ProtectionLevel.self, forKey: .level))
      case .group: .group(try container.decode(String.self, forKey: .group))
      case .timeWindow: .timeWindow(try container.decode(TimeWindow.self, forKey: .window))
      }
    self.init(test, negated: try container.decodeIfPresent(Bool.self, forKey: .not) ?? false)
  }

  public func encode(to encoder: any Encoder) throws {
    if case .unknown(let value) = test { return try value.encode(to: encoder) }
    var container = encoder.container(keyedBy: Key.self)
    func put(_ kind: Kind) throws { try container.encode(kind.rawValue, forKey: .kind) }
    func put(_ range: VersionRange) throws {
      try container.encodeIfPresent(range.atLeast, forKey: .atLeast)
      try container.encodeIfPresent(range.below, forKey: .below)
    }
    if isNegated { try container.encode(true, forKey: .not) }
    switch test {
    case .deviceUnlocked: try put(.deviceUnlocked)
    case .policyAgeAtMost(let seconds):
      try put(.policyAgeAtMost)
      try container.encode(seconds, forKey: .seconds)
    case .osVersion(let versions):
      try put(.osVersion)
      try put(versions)
    case .appVersion(let versions):
      try put(.appVersion)
      try put(versions)
    case .protectionAtLeast(let level):
      try put(.protectionAtLeast)
      try container.encode(level, forKey: .level)
    case .group(let group):
      try put(.group)
      try container.encode(group, forKey: .group)
    case .timeWindow(let window):
      try put(.timeWindow)
      try container.encode(window, forKey: .window)
    case .unknown: break
    }
  }
}
