internal import HTTPTypes
internal import Hummingbird

/// One method of one path: who may call it, what body it takes, what it does. Nothing answers that is not a route.
struct Route: Sendable {
  /// What the caller must be. The handler gets the proof, so that none can run without it.
  enum Access: Sendable {
    /// The request itself carries what it needs, or gives nothing away.
    case anyone(@Sendable (Call) async throws -> Response)
    /// An API token of any role.
    case reader(@Sendable (Call, APIToken) async throws -> Response)
    /// An API token of a role that may change policy.
    case changer(@Sendable (Call, APIToken) async throws -> Response)
    /// A device token.
    case device(@Sendable (Call, Device) async throws -> Response)
  }

  /// The body that a route takes, and its limit in bytes.
  enum Body: Sendable {
    case none
    case json(limit: Int)
    case form(limit: Int)
  }

  let method: HTTPRequest.Method
  let path: RouterPath
  let body: Body
  let access: Access

  init(_ method: HTTPRequest.Method, _ path: RouterPath, body: Body = .none, _ access: Access) {
    self.method = method
    self.path = path
    self.body = body
    self.access = access
  }
}
