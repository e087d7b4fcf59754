/// What a cryptographic operation refuses. It never says which byte or key was wrong.
public enum CryptoError: Error, Equatable, Sendable, CustomStringConvertible {
  /// An authentication tag, a signature or a wrapped key does not verify: altered bytes or another key.
  case notAuthentic
  /// An argument has the wrong size or is outside the accepted range. `what` names it, never its value.
  case invalid(String)
  /// The system has not so many bytes of memory as the operation takes.
  case noMemory(byteCount: Int)

  public var description: String {
    switch self {
    case .notAuthentic: "the data is not authentic: it was altered, or sealed with another key"
    case .invalid(let what): "invalid \(what)"
    case .noMemory(let byteCount): "\(byteCount >> 20) MiB of memory are needed, and the system has not so much"
    }
  }
}
