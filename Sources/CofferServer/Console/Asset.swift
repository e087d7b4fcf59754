internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// A file that pages load from this server. Its name has its digest, so that a browser never has the wrong one.
struct Asset: Sendable {
  let path: Link
  private let type: String
  private let tag: EntityTag
  private let bytes: [UInt8]

  private init(_ name: String, _ type: String, _ bytes: [UInt8]) {
    self.type = type
    self.bytes = bytes
    tag = EntityTag(of: bytes)
    let digest = String(tag.description.filter { $0 != "\"" }.prefix(16))
    path = "/console/assets/\(digest).\(name)"
  }

  static let style = Asset("console.css", "text/css; charset=utf-8", PackageResources.console_css)
  static let script = Asset("console.js", "text/javascript; charset=utf-8", PackageResources.console_js)

  func response(to request: Request) -> Response {
    var headers: HTTPFields = [:]
    headers[.eTag] = tag.description
    headers[.contentType] = type
    var response = Response.plain(.ok, headers: headers, body: ByteBuffer(bytes: bytes))
    // It is the same for everybody, and another one has another name.
    response.headers[.cacheControl] = "public, max-age=31536000, immutable"
    return response
  }
}
