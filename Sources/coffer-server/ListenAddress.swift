internal import ArgumentParser

/// `HOST:PORT`; an IPv6 address stands in brackets.
struct ListenAddress: ExpressibleByArgument, CustomStringConvertible {
  let host: String
  let port: Int

  static let standard = ListenAddress(host: "127.0.0.1", port: 8420)

  init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  init?(argument: String) {
    guard let colon = argument.lastIndex(of: ":"), let port = UInt16(argument[argument.index(after: colon)...]) else {
      return nil
    }
    var host = argument[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      return nil
    }
    guard !host.isEmpty else { return nil }
    self.init(host: String(host), port: Int(port))
  }

  /// The host as a URL has it.
  var urlHost: String { host.contains(":") ? "[\(host)]" : host }
  var description: String { "\(urlHost):\(port)" }
  var defaultValueDescription: String { description }
}
