internal import CofferSystem

/// What the agent tells its client.
enum AgentAnswer: Hashable, Sendable {
  /// The command runs: from here on the client must not do it itself.
  case accepted
  /// Are you there? The client answers with a zero byte, behind the signals that it has got by then.
  case ping
  /// The command takes nothing back, or has taken back what it had begun: the client is to end, as by this signal.
  case end(signal: UInt8)
  /// The command has ended with this exit code; with `brokenPipe` because nobody reads its output.
  case exit(code: Int32, brokenPipe: Bool)
  /// The agent holds another vault.
  case notServed
  /// A request was done, or failed with a code and the reason.
  case outcome(code: Int32, text: String)

  private static let limit = 64 << 10

  var bytes: [UInt8] {
    var body = ByteWriter()
    switch self {
    case .accepted: body.write(UInt8(1))
    case .ping: body.write(UInt8(2))
    case .end(let signal):
      body.write(UInt8(3))
      body.write(signal)
    case .exit(let code, let brokenPipe):
      body.write(UInt8(4))
      body.write(code)
      body.write(UInt8(brokenPipe ? 1 : 0))
    case .notServed: body.write(UInt8(5))
    case .outcome(let code, let text):
      body.write(UInt8(6))
      body.write(code)
      body.write(counted: Array(text.utf8.prefix(Self.limit - 64)))
    }
    var frame = ByteWriter()
    frame.write(counted: body.bytes)
    return frame.bytes
  }

  private init(parsing bytes: [UInt8]) throws {
    var reader = ByteReader(bytes)
    self =
      switch try reader.read(UInt8.self) {
      case 1: .accepted
      case 2: .ping
      case 3: .end(signal: try reader.read())
      case 4: .exit(code: try reader.read(), brokenPipe: try reader.read(UInt8.self) == 1)
      case 5: .notServed
      case 6:
        .outcome(
          code: try reader.read(), text: String(decoding: try reader.read(countedUpTo: Self.limit), as: UTF8.self))
      default: throw MalformedBytes()
      }
    try reader.finish()
  }

  /// Waits for the next one; nil where the agent has gone.
  static func receive(from socket: LocalSocket) throws -> AgentAnswer? {
    guard let head = try bytes(4, from: socket) else { return nil }
    var reader = ByteReader(head)
    let count = try reader.read(UInt32.self)
    guard count <= limit else { throw MalformedBytes() }
    guard let body = try bytes(Int(count), from: socket) else { return nil }
    return try AgentAnswer(parsing: body)
  }

  private static func bytes(_ count: Int, from socket: LocalSocket) throws -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    let filled = try bytes.withUnsafeMutableBytes { buffer in
      var filled = 0
      while filled < count {
        var none: [OwnedDescriptor] = []
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
        guard let got = try socket.receive(into: rest, waits: true, descriptors: &none), got > 0 else { break }
        filled += got
      }
      return filled
    }
    return filled == count ? bytes : nil
  }
}
