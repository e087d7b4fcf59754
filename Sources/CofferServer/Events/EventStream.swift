internal import CofferSystem
internal import Hummingbird
internal import NIOCore

/// The body of one open stream. There may be ten thousand, so that it holds no more than it needs, and asks the store in
/// tasks of their own (``StreamingResponder``).
final class EventStream: Sendable {
  private let server: PolicyServer
  private let device: Device
  /// The hash of what the stream was opened with.
  private let token: [UInt8]
  /// When that token ends.
  private let expiresAt: Int64
  private let subscriber: Subscriber

  init(server: PolicyServer, device: Device, token: [UInt8], expiresAt: Int64, subscriber: Subscriber) {
    self.server = server
    self.device = device
    self.token = token
    self.expiresAt = expiresAt
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

  /// Whether the token still is one of a device. A store that does not answer ends no stream before the token's end: it has
  /// nothing to tell either, and all devices would come back at once to ask it.
  private func isKnown() async throws -> Bool {
    guard server.time.now().seconds < expiresAt else { return false }
    do {
      _ = try await server.authentication.device(tokenHash: token)
      return true
    } catch is StoreError {
      return true
    } catch let problem as HTTPProblem {
      return problem.name == .unavailable
    }
  }
}
