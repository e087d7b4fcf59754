internal import Hummingbird

/// Lets answers that last be found in a task of their own.
///
/// A task keeps the memory of its deepest calls until it ends, and that of a connection with an open stream does not end:
/// looking for the route, the caller and the store's rows left 15 KiB with each stream. What is found in another task leaves
/// nothing.
struct StreamingResponder<Inner: HTTPResponder<ServerContext>>: HTTPResponder {
  typealias Context = ServerContext

  let inner: Inner

  func respond(to request: Request, context: ServerContext) async throws -> Response {
    // Both are short: nobody has to cancel them.
    guard request.uri.path.hasSuffix("/events") else { return try await inner.respond(to: request, context: context) }
    return try await Self.apart { try await inner.respond(to: request, context: context) }
  }

  private static func apart(_ body: @escaping @Sendable () async throws -> Response) async throws -> Response {
    try await Task { try await body() }.value
  }
}
