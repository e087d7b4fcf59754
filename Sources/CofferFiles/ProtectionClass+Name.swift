extension ProtectionClass {
  /// As a person types and reads it.
  public var name: String {
    switch self {
    case .complete: "complete"
    case .completeUnlessOpen: "complete-unless-open"
    case .untilFirstUnlock: "until-first-unlock"
    case .none: "none"
    }
  }

  /// Nil where no class has the name.
  public init?(name: String) {
    guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = found
  }
}
