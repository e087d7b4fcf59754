internal import CofferPolicy
internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// One request to the console, with whoever makes it.
struct Visit: Sendable {
  /// A form that was refused: what was typed, and why.
  struct Refusal: Sendable {
    let problem: HTTPProblem
    let values: FormValues
  }

  let call: Call
  let signedIn: SignedIn?
  let company: String
  /// What the form sent; of a page, the query.
  let values: FormValues
  /// Where the stream of events was when the page was made.
  let mark: Int64
  let now: Int64
  var refusal: Refusal?

  /// The path that the request asked for.
  var path: String { call.request.uri.path }

  func person() throws -> SignedIn {
    guard let signedIn else { throw HTTPProblem.unauthorized(tokenGiven: false) }
    return signedIn
  }

  /// The person as the API knows callers: a form does what the API does, and nothing besides.
  func caller() throws -> Caller { Caller(try person()) }

  /// Throws one problem that names each of these fields that the form has and that nobody filled in.
  func demand(_ fields: String...) throws {
    let missing = fields.filter { !values.all($0).isEmpty && values.text($0) == nil }
    guard !missing.isEmpty else { return }
    throw HTTPProblem(
      .invalidFields, "Something is missing.", fields: missing.map { .init(field: $0, detail: "is missing") })
  }

  func may(_ permission: Permission) -> Bool {
    signedIn?.administrator.role.permissions.contains(permission) == true
  }

  /// The request to the API that stands behind the form: with `body`, and with the version of the thing that the page
  /// showed. Of the browser's own headers none is passed on that says anything about either.
  ///
  /// - Parameter id: what stands for `:id`, when it is not what the form's own path has.
  func asking(
    _ body: JSONValue = .object([:]), id: String? = nil, match: String? = nil, query: String = ""
  ) -> Call {
    var head = call.request.head
    head.headerFields[.ifMatch] = match ?? values.text("match")
    head.headerFields[.idempotencyKey] = nil
    head.path = query.isEmpty ? path : "\(path)?\(query)"
    var parameters = call.parameters
    if let id { parameters["id"] = Substring(id) }
    return Call(
      request: Request(head: head, body: RequestBody(buffer: ByteBuffer())), parameters: parameters,
      body: Response.encoded(body), channel: call.channel, address: call.address)
  }
}

extension JSONValue {
  /// What a value is in JSON.
  init(encoding value: some Encodable) throws {
    self = try JSONDecoder().decode(JSONValue.self, from: Data(Response.encoded(value)))
  }

  /// A list of texts.
  static func texts(_ texts: [String]) -> JSONValue { .array(texts.map { .string($0) }) }

  /// An object of what is there.
  static func fields(_ fields: KeyValuePairs<String, JSONValue?>) -> JSONValue {
    var object: [String: JSONValue] = [:]
    for (name, value) in fields { if let value { object[name] = value } }
    return .object(object)
  }
}
