internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// Tells an open page that something is not as it shows it. The page then asks for itself again, as the person that it
/// belongs to: the stream has nothing in it that anybody could learn.
extension Console {
  @Sendable func streamNews(_ visit: Visit) async throws -> Response {
    let (watchers, person) = (server.watchers, try visit.person())
    guard !watchers.hub.isClosed else { throw HTTPProblem.busy }
    let tenant = person.administrator.tenant
    let seen =
      visit.call.request.headers[.lastEventID].flatMap { Int64($0) } ?? visit.values.text("seen").flatMap { Int64($0) }
    let window = "\(person.session.id)/\(Int.random(in: 0..<Watchers.windows))"
    let subscriber = Subscriber(
      tenant: tenant, device: window, told: seen.map { EventPosition(revision: $0, command: 0) },
      channel: visit.call.channel)
    let body = ResponseBody.later { writer in
      guard watchers.hub.add(subscriber) else { return try await writer.finish(nil) }
      defer { watchers.hub.remove(subscriber) }
      subscriber.start(at: EventPosition(revision: watchers.mark(of: tenant), command: 0))
      var text = "retry: 3000\n\n"
      while true {
        subscriber.noteWriting(since: watchers.hub.clock)
        try await writer.write(ByteBuffer(string: text))
        subscriber.noteWriting(since: nil)
        let signal = await subscriber.next()
        // Whoever signed out meanwhile, or was removed, is told nothing more.
        guard await isOpen(visit.call.request) else { return try await writer.finish(nil) }
        switch signal {
        case .moved(let position): text = "id: \(position.revision)\nevent: change\ndata: {}\n\n"
        case .heartbeat: text = ":\n\n"
        case .ended: return try await writer.finish(nil)
        }
      }
    }
    return Response(
      status: .ok, headers: [.contentType: Route.Answer.events.rawValue, .cacheControl: "no-store"], body: body)
  }

  private func isOpen(_ request: Request) async -> Bool {
    (try? await server.authentication.session(of: request, isUse: false)) != nil
  }
}
