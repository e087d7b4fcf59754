internal import HTTPTypes
internal import Hummingbird

/// One page of the console, or one thing that its forms do.
struct ConsoleRoute: Sendable {
  /// Something that a form does. What is refused is told on the page that the form stands on.
  struct Change: Sendable {
    let perform: @Sendable (Visit) async throws -> Outcome
    let page: @Sendable (Visit) async throws -> ConsolePage
  }

  enum Access: Sendable {
    /// Nobody has to be known to see it.
    case open(@Sendable (Visit) async throws -> ConsolePage)
    /// A form for people who are not known yet. It has no session whose token it could carry: what the browser says
    /// of the page that sends it has to do.
    case openChange(Change)
    /// For whoever is signed in; with a permission, for whoever has it.
    case page(Permission?, @Sendable (Visit) async throws -> ConsolePage)
    case change(Permission?, Change)
    /// Answers with something else than a page.
    case other(Permission?, @Sendable (Visit) async throws -> Response)
    /// The same, where a page asks for it by itself: no sign that somebody sits before it.
    case stream(@Sendable (Visit) async throws -> Response)
    /// As `other`, for a form.
    case otherChange(Permission?, @Sendable (Visit) async throws -> Response)
    /// A file of the console's own.
    case asset(Asset)
    case redirect(Link)
  }

  let method: HTTPRequest.Method
  let path: RouterPath
  let access: Access

  static func page(
    _ path: RouterPath, _ permission: Permission?, _ page: @escaping @Sendable (Visit) async throws -> ConsolePage
  ) -> ConsoleRoute { ConsoleRoute(method: .get, path: path, access: .page(permission, page)) }

  static func change(
    _ path: RouterPath, _ permission: Permission?, on page: @escaping @Sendable (Visit) async throws -> ConsolePage,
    _ perform: @escaping @Sendable (Visit) async throws -> Outcome
  ) -> ConsoleRoute {
    ConsoleRoute(method: .post, path: path, access: .change(permission, Change(perform: perform, page: page)))
  }
}

/// What a change leads to.
enum Outcome: Sendable {
  /// Another page, so that loading it again does nothing again.
  case see(Link, Notice?)
  /// A page that cannot be had again, because it shows a secret once.
  case show(ConsolePage)
  /// A file to keep, which cannot be had again.
  case file(Response)
  /// A page with a cookie that is set or cleared.
  case leave(Link, cookie: String)
}

/// A page without its frame.
struct ConsolePage: Sendable {
  /// The heading and the beginning of the window's title.
  let title: String
  /// The part of the console that it belongs to.
  var place: Place?
  let content: HTML

  init(_ title: String, in place: Place? = nil, @HTMLBuilder content: () -> HTML) {
    self.title = title
    self.place = place
    self.content = content()
  }
}
