internal import Foundation

/// Where a company's server is: `https://HOST[:PORT][/PATH]`, or `http://` on this machine.
struct ServerAddress: Hashable, Sendable {
  /// Without a slash at its end.
  let base: String
  let isSecure: Bool

  init(_ text: String) throws(ClientError) {
    guard text.utf8.count <= 2048, text.utf8.allSatisfy({ (33...126).contains($0) && $0 != UInt8(ascii: "\\") }),
      let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(), parts.user == nil,
      parts.password == nil, parts.query == nil, parts.fragment == nil, !text.contains("@"),
      let host = parts.percentEncodedHost?.lowercased(), !host.isEmpty, !host.contains("%"),
      parts.port.map((1...65_535).contains) ?? true, Self.isPlain(parts.percentEncodedPath)
    else { throw .badAddress }
    switch scheme {
    case "https": isSecure = true
    case "http" where Self.isLoopback(host): isSecure = false
    case "http": throw .insecureAddress
    default: throw .badAddress
    }
    var path = parts.percentEncodedPath
    while path.hasSuffix("/") { path.removeLast() }
    base = "\(scheme)://\(host)\(parts.port.map { ":\($0)" } ?? "")\(path)"
  }

  /// Whether `host` is this machine by its very text. Other spellings of loopback addresses are not needed, and what
  /// a resolver would make of a name is not asked.
  private static func isLoopback(_ host: String) -> Bool {
    if host == "localhost" || host == "[::1]" || host == "::1" { return true }
    let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
    return numbers.count == 4 && numbers[0] == "127"
      && numbers.allSatisfy { number in UInt8(number).map { String($0) == number } ?? false }
  }

  private static func isPlain(_ path: String) -> Bool {
    path.utf8.allSatisfy { "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/".utf8.contains($0) }
      && !path.split(separator: "/").contains { $0 == "." || $0 == ".." }
  }
}
