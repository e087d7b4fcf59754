internal import HTTPTypes
internal import Hummingbird

/// One method of one path: who may call it, what body it takes, what it does. Nothing answers that is not a route.
struct Route: Sendable {
  /// What the caller must be. The handler gets the proof, so that none can run without it.
  enum Access: Sendable {
    /// The request itself carries what it needs, or gives nothing away.
    case anyone(@Sendable (Call) async throws -> Response)
    /// A token or a session of the company's administration that has the permission.
    case administration(Permission, @Sendable (Call, Caller) async throws -> Response)
    /// A person who signed in, about nobody but that person; with a permission, where it is about more.
    case person(Permission?, @Sendable (Call, SignedIn) async throws -> Response)
    /// A device token.
    case device(@Sendable (Call, Device) async throws -> Response)
  }

  /// The body that a route takes, and its limit in bytes.
  enum Body: Sendable {
    case none
    case json(limit: Int)
    case form(limit: Int)
  }

  /// What a successful answer is. Refusals are problem documents whatever it is.
  enum Answer: String, Sendable {
    case json = "application/json"
    case events = "text/event-stream"
    case lines = "application/jsonl"
    case text = "text/plain"
    case page = "text/html"
  }

  let method: HTTPRequest.Method
  let path: RouterPath
  let body: Body
  let answer: Answer
  let access: Access

  init(
    _ method: HTTPRequest.Method, _ path: RouterPath, body: Body = .none, answer: Answer = .json, _ access: Access
  ) {
    self.method = method
    self.path = path
    self.body = body
    self.answer = answer
    self.access = access
  }
}
