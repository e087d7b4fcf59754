/// What a cryptographic operation refuses. It never says which byte or key was wrong.
public enum CryptoError: Error, Equatable, Sendable, CustomStringConvertible {
  /// An authentication tag, a signature or a wrapped key does not verify: altered bytes or another key.
  case notAuthentic
  /// An argument has the wrong size or is outside the accepted range. `what` names it, never its value.
  case invalid(String)

  public var description: String {
    switch self {
    case .notAuthentic: "the data is not authentic: it was altered, or sealed with another key"
    case .invalid(let what): "invalid \(what)"
    }
  }
}
