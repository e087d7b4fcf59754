internal import NIOCore

/// Which hosts never leave this machine.
enum LoopbackAddress {
  /// `localhost`, 127.0.0.0/8 and ::1. A name that merely resolves to one may resolve otherwise tomorrow.
  static func isLoopback(_ host: String) -> Bool {
    if host.lowercased() == "localhost" { return true }
    guard let address = try? SocketAddress(ipAddress: host, port: 0) else { return false }
    return switch address {
    case .v4: host.hasPrefix("127.")
    case .v6: address.ipAddress == "::1"
    default: false
    }
  }
}
