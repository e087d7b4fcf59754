internal import Hummingbird

extension PolicyServer {
  /// Whether this server can answer: asks the store, too.
  var healthRoutes: [Route] {
    [
      Route(
        .get, "/health",
        .anyone { _ in
          _ = try await store.read { try $0.tenant(id: "") }
          return .json(["status": "ok"])
        })
    ]
  }
}
