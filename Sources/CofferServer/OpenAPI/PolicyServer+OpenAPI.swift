internal import Hummingbird
internal import NIOCore
internal import Synchronization

/// The document's bytes, made when somebody asks first.
final class OpenAPICache: Sendable {
  private let bytes = Mutex<ByteBuffer?>(nil)

  func bytes(_ make: () -> ByteBuffer) -> ByteBuffer {
    bytes.withLock { bytes in
      if let bytes { return bytes }
      let made = make()
      bytes = made
      return made
    }
  }
}

extension PolicyServer {
  /// What this server answers, for programs. It holds nothing of any company.
  @Sendable func showOpenAPI(_ call: Call) async throws -> Response {
    .json(
      encoded: openAPI.bytes {
        ByteBuffer(bytes: Response.encoded(OpenAPIDocument(routes, cookie: site.cookie.name).json))
      })
  }
}
