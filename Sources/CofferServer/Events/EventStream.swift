internal import Hummingbird
internal import NIOCore

/// The body of one open stream. There may be ten thousand, so that it holds no more than it needs, and asks the store in
/// tasks of their own (``StreamingResponder``).
final class EventStream: Sendable {
  private let server: PolicyServer
  private let device: Device
  /// The hash of what the stream was opened with.
  private let token: [UInt8]
  private let subscriber: Subscriber

  init(server: PolicyServer, device: Device, token: [UInt8], subscriber: Subscriber) {
    self.server = server
    self.device = device
    self.token = token
    self.subscriber = subscriber
  }

  @concurrent func write(to writer: inout any ResponseBodyWriter) async throws {
    guard server.events.add(subscriber) else { return try await writer.finish(nil) }
    defer { server.events.remove(subscriber) }
    // After it was added: whatever is committed from now on wakes it or ends it, and the rest is in the store.
    subscriber.start(at: try await Task { try await server.position(of: device) }.value)
    var text = "retry: 2000\n\n"
    while true {
      subscriber.noteWriting(since: server.events.clock)
      try await writer.write(ByteBuffer(string: text))
      subscriber.noteWriting(since: nil)
      switch await subscriber.next() {
      case .moved(let position):
        let data = #"{"command":\#(position.command),"revision":\#(position.revision)}"#
        text = "id: \(position)\nevent: change\ndata: \(data)\n\n"
      case .heartbeat:
        // A removal by another process of this machine wakes nobody, and a token ends by itself.
        guard try await Task(operation: { try await isKnown() }).value else { return try await writer.finish(nil) }
        text = ":\n\n"
      case .ended: return try await writer.finish(nil)
      }
    }
  }

  /// Whether the token still is one of a device.
  private func isKnown() async throws -> Bool {
    do {
      _ = try await server.authentication.device(tokenHash: token)
      return true
    } catch is HTTPProblem {
      return false
    }
  }
}
