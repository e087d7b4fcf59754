/// A file's protection class, as policy compares it. Ordered: a class that gives up its key sooner is greater.
public enum ProtectionLevel: String, Codable, CaseIterable, Hashable, Comparable, Sendable {
  case none
  case untilFirstUnlock = "until-first-unlock"
  case completeUnlessOpen = "complete-unless-open"
  case complete

  private var strength: Int {
    switch self {
    case .none: 0
    case .untilFirstUnlock: 1
    case .completeUnlessOpen: 2
    case .complete: 3
    }
  }

  public static func < (left: ProtectionLevel, right: ProtectionLevel) -> Bool { left.strength < right.strength }
}
