internal import CofferCrypto
internal import CofferSystem
internal import HTTPTypes
internal import Hummingbird

/// The cookie that a signed-in browser sends (RFC 6265): not for scripts, not for other sites, and over TLS with the
/// prefix by which browsers bind it to this host and to TLS.
struct SessionCookie: Sendable {
  let isSecure: Bool

  var name: String { isSecure ? "__Host-coffer" : "coffer" }

  /// The session's secret, when the request has exactly one such cookie.
  func secret(in headers: HTTPFields) -> String? {
    var own: [Substring] = []
    for header in headers[values: .cookie] {
      for pair in header.split(separator: ";") {
        let parts = pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2 && parts[0] == name { own.append(parts[1]) }
      }
    }
    guard own.count == 1, own[0].hasPrefix(BearerToken.Kind.session.rawValue) else { return nil }
    return String(own[0])
  }

  /// The value of Set-Cookie that gives the cookie.
  func setting(_ secret: BearerToken) -> String { "\(name)=\(secret.text)\(attributes)" }

  /// The value of Set-Cookie that takes it away.
  var clearing: String { "\(name)=\(attributes); Max-Age=0" }

  private var attributes: String { "; Path=/; HttpOnly; SameSite=Strict\(isSecure ? "; Secure" : "")" }

  /// What pages of this origin send beside the cookie with every change. It is made of the cookie, which no other
  /// origin can read; and the cookie cannot be made of it.
  static func csrfToken(of secret: String) -> String { Digest.sha256("coffer csrf\0\(secret)".utf8).hexadecimal }
}

extension HTTPField.Name {
  static let csrfToken = HTTPField.Name("X-CSRF-Token")!
  static let fetchSite = HTTPField.Name("Sec-Fetch-Site")!
}
