/// An error as the server tells it (RFC 9457), with the media type `application/problem+json`.
public struct Problem: Codable, Hashable, Sendable {
  public static let mediaType = "application/problem+json"

  /// `urn:coffer:problem:NAME`; programs decide by it.
  public var type: String
  public var title: String
  /// The HTTP status.
  public var status: Int
  /// What to do about it.
  public var detail: String?

  public init(name: String, title: String, status: Int, detail: String? = nil) {
    type = Self.urn(name)
    self.title = title
    self.status = status
    self.detail = detail
  }

  /// The `type` of the problem `name`.
  public static func urn(_ name: String) -> String { "urn:coffer:problem:\(name)" }

  /// An enrolment code that is unknown, used or expired: the server does not say which.
  public static let enrollmentCode = "enrollment-code"
  /// A receipt of no order of its device, or not signed by the device's key.
  public static let invalidReceipt = "invalid-receipt"
  /// A field that is none, or beyond what the server takes.
  public static let invalidFields = "invalid-fields"
}
