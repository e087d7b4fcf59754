internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// Where people reach the server, as far as it matters for whom a browser's request is from.
public struct Site: Sendable {
  /// Whether people reach it over TLS: its own, or that of a proxy in front.
  public let isSecure: Bool
  /// `https://HOST[:PORT]`, when the operator said so; otherwise each request's Host counts.
  let origin: String?

  /// A server that people reach as it listens.
  public init(isSecure: Bool) {
    self.isSecure = isSecure
    origin = nil
  }

  /// A server that people reach as `publicURL`. Throws `ServerError.invalid` unless it is `http(s)://HOST[:PORT]`.
  public init(publicURL text: String) throws(ServerError) {
    guard let url = URLComponents(string: text), let scheme = url.scheme?.lowercased(),
      scheme == "https" || scheme == "http", let host = url.host, !host.isEmpty, ["", "/"].contains(url.path),
      url.query == nil, url.fragment == nil, url.user == nil, url.password == nil
    else { throw .invalid("the public URL is https://HOST[:PORT]") }
    isSecure = scheme == "https"
    let standard = isSecure ? 443 : 80
    let port = url.port.map { $0 == standard ? "" : ":\($0)" } ?? ""
    origin = "\(scheme)://\(host.lowercased())\(port)"
  }

  /// Where links lead that people follow; nil when the operator did not say.
  public var address: String? { origin }

  var cookie: SessionCookie { SessionCookie(isSecure: isSecure) }

  /// What the browser says about where a request comes from.
  enum Provenance {
    case ownPage
    /// Neither header: no browser of this decade, or none at all.
    case unknown
    case elsewhere
  }

  func provenance(of request: Request) -> Provenance {
    let (sites, origins) = (request.headers[values: .fetchSite], request.headers[values: .origin])
    if sites.isEmpty && origins.isEmpty { return .unknown }
    guard sites.allSatisfy({ $0 == "same-origin" }), sites.count <= 1, origins.count <= 1 else { return .elsewhere }
    guard let given = origins.first else { return .ownPage }
    let own = origin ?? "\(isSecure ? "https" : "http")://\(request.head.authority?.lowercased() ?? "")"
    return given.lowercased() == own ? .ownPage : .elsewhere
  }
}
