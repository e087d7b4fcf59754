/// Looks at the beginning of a file and names its media type: a confined helper on Linux, the system's types on Apple
/// platforms.
public protocol ContentSniffer: Sendable {
  /// The media type of a file that starts with `head`; nil when it cannot be told.
  ///
  /// - Parameter head: the first bytes of the file, at most `ContentTypeDetector.headLimit`.
  func mediaType(of head: [UInt8]) -> String?
}
