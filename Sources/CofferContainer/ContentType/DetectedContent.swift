/// What a file's bytes say that it is.
public enum DetectedContent: Hashable, Sendable {
  /// A media type (RFC 6838) in lower case, without parameters, such as `application/pdf`.
  case mediaType(String)
  /// Nothing that can be relied on: bytes of no known type, or bytes that claim to be several things at once. Policy
  /// refuses it.
  case unknown

  /// The media type, where there is one.
  public var mediaType: String? {
    switch self {
    case .mediaType(let type): type
    case .unknown: nil
    }
  }
}
