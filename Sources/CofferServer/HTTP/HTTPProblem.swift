internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// A refusal as an RFC 9457 problem document. Names the field that was wrong, never its value.
struct HTTPProblem: Error {
  /// The last part of the stable type `urn:coffer:problem:NAME`.
  enum Name: String, CaseIterable {
    case malformedRequest = "malformed-request"
    case invalidAssertion = "invalid-assertion"
    case invalidReceipt = "invalid-receipt"
    case unauthorized
    case signInRefused = "sign-in-refused"
    case forbidden
    case crossSite = "cross-site"
    case notFound = "not-found"
    case enrollmentCode = "enrollment-code"
    case methodNotAllowed = "method-not-allowed"
    case notAcceptable = "not-acceptable"
    case alreadyExists = "already-exists"
    case conflict
    case preconditionFailed = "precondition-failed"
    case preconditionRequired = "precondition-required"
    case bodyTooLarge = "body-too-large"
    case unsupportedMediaType = "unsupported-media-type"
    case invalidFields = "invalid-fields"
    case idempotencyKeyReused = "idempotency-key-reused"
    case tooManyRequests = "too-many-requests"
    case policyTooLarge = "policy-too-large"
    case internalError = "internal-error"
    case unavailable

    var status: HTTPResponse.Status {
      switch self {
      case .malformedRequest, .invalidAssertion, .invalidReceipt: .badRequest
      case .unauthorized, .signInRefused: .unauthorized
      case .forbidden, .crossSite: .forbidden
      case .notFound, .enrollmentCode: .notFound
      case .methodNotAllowed: .methodNotAllowed
      case .notAcceptable: .notAcceptable
      case .alreadyExists, .conflict: .conflict
      case .preconditionFailed: .preconditionFailed
      case .preconditionRequired: .preconditionRequired
      case .bodyTooLarge: .contentTooLarge
      case .unsupportedMediaType: .unsupportedMediaType
      case .invalidFields, .policyTooLarge, .idempotencyKeyReused: .unprocessableContent
      case .tooManyRequests: .tooManyRequests
      case .internalError: .internalServerError
      case .unavailable: .serviceUnavailable
      }
    }

    var title: String {
      switch self {
      case .malformedRequest: "The request cannot be read"
      case .invalidAssertion: "The assertion is not accepted"
      case .invalidReceipt: "The receipt is not accepted"
      case .unauthorized: "A valid token is needed"
      case .signInRefused: "The sign-in is not accepted"
      case .forbidden: "This is not allowed to the caller"
      case .crossSite: "The request is not from a page of this server"
      case .notFound: "Nothing is here"
      case .enrollmentCode: "The enrolment code is not accepted"
      case .methodNotAllowed: "The method is not allowed here"
      case .notAcceptable: "No acceptable representation"
      case .alreadyExists: "It exists already"
      case .conflict: "It is not in a state for this"
      case .preconditionFailed: "It was changed meanwhile"
      case .preconditionRequired: "If-Match is needed"
      case .bodyTooLarge: "The body is too large"
      case .unsupportedMediaType: "The content type is not accepted"
      case .invalidFields: "A field is not valid"
      case .idempotencyKeyReused: "The idempotency key was used for another request"
      case .tooManyRequests: "Too many attempts"
      case .policyTooLarge: "The policy is too large"
      case .internalError: "Internal error"
      case .unavailable: "Not available now"
      }
    }
  }

  /// One field of the body that is not valid.
  struct Field: Encodable, Equatable {
    let field: String
    let detail: String
  }

  let name: Name
  let detail: String
  var fields: [Field] = []
  var headers: HTTPFields = [:]

  init(_ name: Name, _ detail: String, fields: [Field] = [], headers: HTTPFields = [:]) {
    self.name = name
    self.detail = detail
    self.fields = fields
    self.headers = headers
  }
}

extension HTTPProblem {
  /// One sentence for what is absent and for what is another company's.
  static let notFound = HTTPProblem(.notFound, "There is nothing here that the caller may see.")

  static func unauthorized(tokenGiven: Bool) -> HTTPProblem {
    let challenge = tokenGiven ? #"Bearer realm="coffer", error="invalid_token""# : #"Bearer realm="coffer""#
    return HTTPProblem(
      .unauthorized, "Send a token that is known and not expired as Authorization: Bearer.",
      headers: [.wwwAuthenticate: challenge])
  }

  static func invalid(_ field: String, _ detail: String) -> HTTPProblem {
    HTTPProblem(.invalidFields, "\(field): \(detail)", fields: [Field(field: field, detail: detail)])
  }

  /// Seconds that a client shall wait before it tries again.
  private static let retryAfter = 5

  static let unavailable = HTTPProblem(
    .unavailable, "The server cannot reach its store. Try again later.", headers: [.retryAfter: "\(retryAfter)"])

  /// For a password's derivation.
  static let noMemory = HTTPProblem(
    .unavailable, "The server has not enough memory at this moment. Try again later.",
    headers: [.retryAfter: "\(retryAfter)"])

  static let damaged = HTTPProblem(
    .unavailable, "The server's store is damaged. Whoever runs it has to put back a backup.",
    headers: [.retryAfter: "60"])

  static let busy = HTTPProblem(
    .unavailable, "The server has too much to do. Try again later.", headers: [.retryAfter: "\(retryAfter)"])

  static let crossSite = HTTPProblem(
    .crossSite, "A change by cookie needs Sec-Fetch-Site or Origin of this server, and the session's X-CSRF-Token.")

  static func forbidden(_ permission: Permission) -> HTTPProblem {
    HTTPProblem(.forbidden, "This needs \(permission.rawValue).")
  }

  static func tooMany(retryAfter seconds: Int64) -> HTTPProblem {
    HTTPProblem(.tooManyRequests, "Wait \(seconds) seconds.", headers: [.retryAfter: "\(seconds)"])
  }

  static let internalError = HTTPProblem(.internalError, "The server failed. Its log says more.")
}

extension HTTPProblem {
  private struct Document: Encodable {
    let type: String
    let title: String
    let status: Int
    let detail: String
    let errors: [Field]?
    /// RFC 6749's code, which RFC 7523 asks for beside.
    let error: String?
  }

  var response: Response {
    let document = Document(
      type: "urn:coffer:problem:\(name.rawValue)", title: name.title, status: name.status.code, detail: detail,
      errors: fields.isEmpty ? nil : fields, error: name == .invalidAssertion ? "invalid_grant" : nil)
    return .json(document, status: name.status, type: "application/problem+json", headers: headers)
  }
}
