/// One to four numbers with dots between them. Missing numbers count as zero: `17.2` equals `17.2.0`.
struct Version: Hashable, Comparable {
  private let parts: [Int]

  /// Nil when `text` is anything else, a number has more than nine digits, or a sign stands there.
  init?(_ text: String) {
    let fields = text.utf8.split(separator: UInt8(ascii: "."), maxSplits: 4, omittingEmptySubsequences: false)
    guard (1...4).contains(fields.count) else { return nil }
    var parts: [Int] = []
    for field in fields {
      guard (1...9).contains(field.count), field.allSatisfy({ (48...57).contains($0) }) else { return nil }
      parts.append(field.reduce(0) { $0 * 10 + Int($1 - 48) })
    }
    self.parts = parts + Array(repeating: 0, count: 4 - parts.count)
  }

  static func < (left: Version, right: Version) -> Bool { left.parts.lexicographicallyPrecedes(right.parts) }
}

/// Bounds on a version, as text: they are read when a rule is evaluated, and a malformed bound is then an error.
public struct VersionRange: Hashable, Sendable {
  /// Included.
  public var atLeast: String?
  /// Excluded.
  public var below: String?

  public init(atLeast: String? = nil, below: String? = nil) {
    self.atLeast = atLeast
    self.below = below
  }

  /// Whether `text` lies within; nil when it or a bound is no version, or there is no bound.
  func contains(_ text: String) -> Bool? {
    guard let version = Version(text), atLeast != nil || below != nil else { return nil }
    var inside = true
    if let atLeast {
      guard let bound = Version(atLeast) else { return nil }
      inside = inside && version >= bound
    }
    if let below {
      guard let bound = Version(below) else { return nil }
      inside = inside && version < bound
    }
    return inside
  }
}
