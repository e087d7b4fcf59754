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
    case .noMemory(let byteCount):
      "a passcode takes \(byteCount >> 20) MiB of memory, and the system does not give so much now (ulimit -v may say why): end other "
        + "programs, and try again"
    }
  }

  /// The system has not what the operation takes, and may have it later.
  public var isShortage: Bool {
    if case .noMemory = self { true } else { false }
  }
}
