/// How long a server may take for one exchange, from the first byte to the last, and how that time is waited for.
struct Timeout: Sendable {
  let duration: Duration
  /// Returns when the time is over; a test says when.
  var wait: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
}
