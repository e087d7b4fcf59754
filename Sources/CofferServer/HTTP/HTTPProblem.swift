internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// A refusal as an RFC 9457 problem document. Names the field that was wrong, never its value.
struct HTTPProblem: Error {
  /// The last part of the stable type `urn:coffer:problem:NAME`.
  enum Name: String, CaseIterable {
    case malformedRequest = "malformed-request"
    case invalidAssertion = "invalid-assertion"
    case unauthorized
    case forbidden
    case notFound = "not-found"
    case enrollmentCode = "enrollment-code"
    case methodNotAllowed = "method-not-allowed"
    case notAcceptable = "not-acceptable"
    case alreadyExists = "already-exists"
    case preconditionFailed = "precondition-failed"
    case bodyTooLarge = "body-too-large"
    case unsupportedMediaType = "unsupported-media-type"
    case invalidFields = "invalid-fields"
    case policyTooLarge = "policy-too-large"
    case internalError = "internal-error"
    case unavailable

    var status: HTTPResponse.Status {
      switch self {
      case .malformedRequest, .invalidAssertion: .badRequest
      case .unauthorized: .unauthorized
      case .forbidden: .forbidden
      case .notFound, .enrollmentCode: .notFound
      case .methodNotAllowed: .methodNotAllowed
      case .notAcceptable: .notAcceptable
      case .alreadyExists: .conflict
      case .preconditionFailed: .preconditionFailed
      case .bodyTooLarge: .contentTooLarge
      case .unsupportedMediaType: .unsupportedMediaType
      case .invalidFields, .policyTooLarge: .unprocessableContent
      case .internalError: .internalServerError
      case .unavailable: .serviceUnavailable
      }
    }

    var title: String {
      switch self {
      case .malformedRequest: "The request cannot be read"
      case .invalidAssertion: "The assertion is not accepted"
      case .unauthorized: "A valid token is needed"
      case .forbidden: "The token's role does not allow this"
      case .notFound: "Nothing is here"
      case .enrollmentCode: "The enrolment code is not accepted"
      case .methodNotAllowed: "The method is not allowed here"
      case .notAcceptable: "No acceptable representation"
      case .alreadyExists: "It exists already"
      case .preconditionFailed: "It was changed meanwhile"
      case .bodyTooLarge: "The body is too large"
      case .unsupportedMediaType: "The content type is not accepted"
      case .invalidFields: "A field is not valid"
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
  static let notFound = HTTPProblem(.notFound, "There is nothing here that this token may see.")

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
