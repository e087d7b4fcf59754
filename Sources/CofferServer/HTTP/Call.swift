internal import CofferPolicy
internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// One request whose body was read and whose caller was established.
struct Call: Sendable {
  let request: Request
  let parameters: Parameters
  let body: [UInt8]
  let channel: any Channel
  /// Who is at the other end of the connection, for counting.
  let address: String

  /// The path's `:id`. A text that cannot be one names nothing, like any other that is absent.
  func id() throws -> String {
    guard let text = parameters.get("id"), let id = UUID(uuidString: text) else { throw HTTPProblem.notFound }
    return id.uuidString.lowercased()
  }

  /// The path's `:id` of what people name themselves, such as a rule.
  func name(_ isName: (String) -> Bool = PolicyText.isIdentifier) throws -> String {
    guard let text = parameters.get("id")?.removingPercentEncoding, isName(text) else { throw HTTPProblem.notFound }
    return text
  }

  /// A parameter of the query that is there once.
  func query(_ name: String) throws -> String? {
    let values = request.uri.queryParameters.getAll(name)
    guard values.count <= 1 else { throw HTTPProblem.invalid(name, "is there more than once") }
    return values.first
  }

  /// The body as JSON. Its depth is bounded by the parser, its size by the route. No text in it has a NUL: what reads
  /// text to its first NUL would take it for another.
  func json<Value: Decodable>(_ type: Value.Type) throws -> Value {
    guard !Self.hasNUL(body) else {
      throw HTTPProblem(.malformedRequest, "The body is not JSON in UTF-8, or has a text with a NUL character.")
    }
    guard JSONMembers.areUnique(in: body) else {
      throw HTTPProblem(
        .malformedRequest, "An object in the body names a member twice, or the body is nested too deeply.")
    }
    do {
      return try JSONDecoder().decode(type, from: Data(body))
    } catch let error as DecodingError {
      throw HTTPProblem(error)
    }
  }

  /// Whether there is a NUL in JSON, as it is or escaped. In UTF-16 or UTF-32 there always is.
  private static func hasNUL(_ json: [UInt8]) -> Bool {
    let escape = Array("u0000".utf8)
    var index = 0
    while index < json.count {
      if json[index] == 0 { return true }
      guard json[index] == UInt8(ascii: "\\") else {
        index += 1
        continue
      }
      if json[(index + 1)...].starts(with: escape) { return true }
      // The backslash and what it escapes, which may be another one.
      index += 2
    }
    return false
  }

  /// The body as a JSON object that has no field beyond `type`'s.
  func strict<Body: StrictBody>(_ type: Body.Type) throws -> Body { try json(Strict<Body>.self).body }

  /// Throws unless the request's If-Match, when there is one, fits `tag`.
  func demandMatch(_ tag: EntityTag) throws {
    guard let header = request.headers[.ifMatch], !tag.satisfies(ifMatch: header) else { return }
    throw HTTPProblem(.preconditionFailed, "Read it again: it is not what If-Match names.")
  }

  /// The same, and throws when the request has no If-Match: nobody may overwrite what they have not seen.
  func requireMatch(_ tag: EntityTag) throws {
    guard request.headers.contains(.ifMatch) else {
      throw HTTPProblem(.preconditionRequired, "Send the ETag of what you read as If-Match.")
    }
    try demandMatch(tag)
  }
}

extension HTTPProblem {
  fileprivate init(_ error: DecodingError) {
    func name(_ path: [any CodingKey]) -> String {
      path.reduce("") { text, key in
        if let index = key.intValue { return "\(text)[\(index)]" }
        return text.isEmpty ? key.stringValue : "\(text).\(key.stringValue)"
      }
    }
    switch error {
    case .keyNotFound(let key, let context): self = .invalid(name(context.codingPath + [key]), "is missing")
    case .typeMismatch(_, let context), .valueNotFound(_, let context):
      self = context.codingPath.isEmpty ? .malformedJSON : .invalid(name(context.codingPath), "is of the wrong type")
    case .dataCorrupted(let context):
      self = context.codingPath.isEmpty ? .malformedJSON : .invalid(name(context.codingPath), "is not a valid value")
    @unknown default: self = .malformedJSON
    }
  }

  static let malformedJSON = HTTPProblem(.malformedRequest, "The body is not a JSON object, or is nested too deeply.")
}
