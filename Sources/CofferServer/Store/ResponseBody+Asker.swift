internal import Hummingbird

extension ResponseBody {
  /// A body that is written after its request was answered, and waits for the store as that did.
  static func later(
    _ write: @escaping @Sendable @concurrent (inout any ResponseBodyWriter) async throws -> Void
  ) -> ResponseBody {
    var asker = StoreLine.asker
    asker.bytes = 0
    return ResponseBody { [asker] writer in
      try await StoreLine.$asker.withValue(asker) { try await write(&writer) }
    }
  }
}
