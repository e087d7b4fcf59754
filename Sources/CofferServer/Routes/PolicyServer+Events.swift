internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// Server-sent events for a connected device (WHATWG HTML, section 9.2). An event only wakes: it holds two numbers and
/// nothing to believe. The device then fetches the signed policy and its commands.
extension PolicyServer {
  @Sendable func streamEvents(_ call: Call, _ device: Device) async throws -> Response {
    guard !events.isClosed else { throw HTTPProblem.busy }
    // What a browser or a client of another server sends there is taken for nothing known.
    let told = call.request.headers[.lastEventID].flatMap(EventPosition.init)
    let token = try authentication.deviceTokenHash(of: call.request)
    let expiresAt = try await authentication.deviceToken(token).expiresAt
    // Asked before the answer begins, so that a store that fails is told by its status.
    _ = try await position(of: device)
    let subscriber = Subscriber(tenant: device.tenant, device: device.id, told: told, channel: call.channel)
    // A device that does not read holds up its own stream after a few events, not after 64 KiB of them.
    try? await call.channel.setOption(ChannelOptions.writeBufferWaterMark, value: .init(low: 256, high: 1024)).get()
    let stream = EventStream(
      server: self, device: device, token: token, expiresAt: expiresAt, subscriber: subscriber)
    return Response(
      status: .ok,
      headers: [
        .contentType: Route.Answer.events.rawValue, .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
      ], body: .later { writer in try await stream.write(to: &writer) })
  }

  /// Throws when the device is none any more.
  func position(of device: Device) async throws -> EventPosition {
    try await store.read { transaction in
      guard try transaction.device(tenant: device.tenant, id: device.id) != nil else {
        throw HTTPProblem.unauthorized(tokenGiven: true)
      }
      return EventPosition(
        revision: try found(transaction.currentRevisionNumber(tenant: device.tenant)),
        command: try transaction.lastCommandNumber(tenant: device.tenant, device: device.id))
    }
  }
}

extension HTTPField.Name {
  static let lastEventID = HTTPField.Name("Last-Event-ID")!
}
