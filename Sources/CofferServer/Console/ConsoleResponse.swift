internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// Answers of the console.
enum ConsoleResponse {
  /// Nothing is loaded but from here, nothing runs that stands in a page, nothing frames a page.
  private static let contentPolicy = [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
    "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].joined(separator: "; ")

  static func page(
    _ html: HTML, status: HTTPResponse.Status, headers: HTTPFields = [:]
  ) -> Response {
    var headers = headers
    headers[.contentType] = "text/html; charset=utf-8"
    return .plain(status, headers: headers, body: ByteBuffer(string: html.document))
  }

  static func redirect(to link: Link, notice: Notice? = nil, cookie: String? = nil) -> Response {
    var headers: HTTPFields = [:]
    headers[.location] = notice.map { "\(link.text)?done=\($0.rawValue)" } ?? link.text
    headers[.setCookie] = cookie
    return .plain(.seeOther, headers: headers)
  }

  /// What every answer of the console carries.
  static func secure(_ response: inout Response, isSecure: Bool) {
    let headers: [(String, String)] = [
      ("Content-Security-Policy", contentPolicy), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "same-origin"),
      ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Resource-Policy", "same-origin"),
      ("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
      ("X-Content-Type-Options", "nosniff"),
    ]
    for (name, value) in headers { if let name = HTTPField.Name(name) { response.headers[name] = value } }
    if isSecure, let name = HTTPField.Name("Strict-Transport-Security") {
      response.headers[name] = "max-age=31536000"
    }
  }
}

extension Response {
  /// The bytes of an answer of the API that is no stream.
  func collected() async throws -> [UInt8] {
    let collector = Collector()
    try await body.write(collector)
    return collector.bytes
  }

  private final class Collector: ResponseBodyWriter {
    var bytes: [UInt8] = []

    func write(_ buffer: ByteBuffer) async throws { bytes.append(contentsOf: buffer.readableBytesView) }
    func finish(_ trailingHeaders: HTTPFields?) async throws {}
  }
}

extension Response {
  /// What an answer of the API says, for the page that shows it.
  func decoded<Value: Decodable>(_ type: Value.Type) async throws -> Value {
    try JSONDecoder().decode(type, from: Data(await collected()))
  }
}
