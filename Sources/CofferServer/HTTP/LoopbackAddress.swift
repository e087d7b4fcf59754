internal import NIOCore

/// Which hosts never leave this machine.
enum LoopbackAddress {
  /// `localhost`, 127.0.0.0/8 and ::1. A name that merely resolves to one may resolve otherwise tomorrow.
  static func isLoopback(_ host: String) -> Bool {
    if host.lowercased() == "localhost" { return true }
    let host = unmapped(host)
    guard let address = try? SocketAddress(ipAddress: host, port: 0) else { return false }
    return switch address {
    case .v4: host.hasPrefix("127.")
    case .v6: address.ipAddress == "::1"
    default: false
    }
  }

  /// An address of IPv4 that IPv6 has (RFC 4291, 2.5.5.2) as IPv4 writes it: so a socket for both tells of it. Others as they are.
  static func unmapped(_ address: String) -> String {
    let mark = "::ffff:"
    return address.lowercased().hasPrefix(mark) && address.contains(".")
      ? String(address.dropFirst(mark.count)) : address
  }
}
