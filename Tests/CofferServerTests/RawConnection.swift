import CofferSystem
import Glibc

/// A connection over which tests say exactly what they mean to.
final class RawConnection {
  private let socket: OwnedDescriptor

  init(port: UInt16) throws {
    let number = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    socket = OwnedDescriptor(adopting: number)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw SystemError(code: errno, call: "connect") }
  }

  func send(_ text: String) throws {
    SignalRelay.ignoreBrokenPipes()
    try socket.writeAll(Array(text.utf8))
  }

  /// What comes until `part` is there.
  func read(until part: String) throws -> String {
    var text = ""
    while !text.contains(part) {
      let more = try portion()
      if more.isEmpty { break }
      text += more
    }
    return text
  }

  func readToEnd() throws -> String {
    var text = ""
    while true {
      let more = try portion()
      if more.isEmpty { return text }
      text += more
    }
  }

  private func portion() throws -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = try buffer.withUnsafeMutableBytes { try socket.read(into: $0) }
    return String(decoding: buffer[..<count], as: UTF8.self)
  }
}
