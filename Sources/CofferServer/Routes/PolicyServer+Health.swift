internal import CofferCrypto
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// What operators and their tools ask.
extension PolicyServer {
  /// Whether this server can answer: asks the store, too, which has some seconds for it.
  @Sendable func showHealth(_ call: Call) async throws -> Response {
    try await store.demandAnswer()
    return .json(["status": "ok"])
  }

  /// Whether new clients shall be sent here: the store answers, and the server is not about to stop.
  @Sendable func showReadiness(_ call: Call) async throws -> Response {
    guard !events.isClosed else { throw HTTPProblem.busy }
    try await store.demandAnswer()
    return .json(["status": "ready"])
  }

  /// Counters of the whole server, for its operator: nothing of this is a company's to see.
  @Sendable func showMetrics(_ call: Call) async throws -> Response {
    guard let metricsKey else { throw HTTPProblem.notFound }
    let given = call.request.headers[values: .authorization]
    guard given.count == 1, given[0].lowercased().hasPrefix("bearer "),
      equalInConstantTime(Digest.sha256(given[0].utf8.dropFirst("bearer ".utf8.count)), metricsKey)
    else { throw HTTPProblem.unauthorized(tokenGiven: !given.isEmpty) }
    let text = metrics.text(gauges: [
      ("coffer_event_streams", events.count), ("coffer_store_waiting", store.waitingCount),
    ])
    return .plain(
      .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"], body: ByteBuffer(string: text))
  }
}
