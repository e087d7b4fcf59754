/// How strongly Coffer holds an app to what it was given. Ordered: a stronger tier is greater.
public enum Tier: String, Codable, CaseIterable, Hashable, Comparable, Sendable {
  /// Only the bundle id is known, and it proves nothing.
  case filtered
  /// The platform hands the file to the app that it identified, and to no other.
  case mediated
  /// The app runs confined, or reads only through a key that it proved to have.
  case enforced

  private var strength: Int {
    switch self {
    case .filtered: 0
    case .mediated: 1
    case .enforced: 2
    }
  }

  public static func < (left: Tier, right: Tier) -> Bool { left.strength < right.strength }
}
