internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

extension Response {
  /// A JSON document with sorted keys, so that equal values have equal bytes. Nothing on this server may be cached by
  /// others or read as another type.
  static func json(
    _ value: some Encodable, status: HTTPResponse.Status = .ok, type: String = "application/json",
    headers: HTTPFields = [:]
  ) -> Response {
    .json(encoded: ByteBuffer(bytes: encoded(value)), status: status, type: type, headers: headers)
  }

  /// The same of a document that is encoded.
  static func json(
    encoded document: ByteBuffer, status: HTTPResponse.Status = .ok, type: String = "application/json",
    headers: HTTPFields = [:]
  ) -> Response {
    var headers = headers
    headers[.contentType] = type
    return .plain(status, headers: headers, body: document)
  }

  /// The bytes of ``json(_:status:type:headers:)``.
  static func encoded(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let bytes = try? encoder.encode(value) else { preconditionFailure("a wire type does not encode") }
    return Array(bytes)
  }

  /// A response without a document.
  static func plain(
    _ status: HTTPResponse.Status, headers: HTTPFields = [:], body: ByteBuffer? = nil
  ) -> Response {
    var headers = headers
    headers[.cacheControl] = "no-store"
    headers[.xContentTypeOptions] = "nosniff"
    return Response(status: status, headers: headers, body: body.map { ResponseBody(byteBuffer: $0) } ?? ResponseBody())
  }
}
