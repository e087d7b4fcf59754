internal import CofferCrypto
internal import CofferSystem
internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// The answer to a request that made something, as it is kept for a repetition of it.
struct KeptAnswer: Codable, Sendable {
  let status: Int
  let headers: [String: String]
  let body: Data

  init(_ value: some Encodable, status: Int = 201, location: String? = nil, tag: EntityTag? = nil) {
    self.status = status
    var headers = ["Content-Type": Route.Answer.json.rawValue]
    headers["Location"] = location
    headers["ETag"] = tag?.description
    self.headers = headers
    body = Data(Response.encoded(value))
  }

  var response: Response {
    var fields: HTTPFields = [:]
    for (name, value) in headers { if let name = HTTPField.Name(name) { fields[name] = value } }
    return .plain(.init(code: status), headers: fields, body: ByteBuffer(bytes: body))
  }
}

/// A request with an `Idempotency-Key`, as the store keeps it for a day.
public struct KeptRequest: Sendable {
  static let lifetime: Int64 = 86_400

  /// SHA-256 of caller, route and key.
  public let key: [UInt8]
  public let tenant: String
  /// SHA-256 of the body.
  public let body: [UInt8]
  /// Sealed, because it may hold a secret that is shown once.
  public let sealedAnswer: [UInt8]
  /// Seconds since 1970.
  public let expiresAt: Int64

  public init(key: [UInt8], tenant: String, body: [UInt8], sealedAnswer: [UInt8], expiresAt: Int64) {
    self.key = key
    self.tenant = tenant
    self.body = body
    self.sealedAnswer = sealedAnswer
    self.expiresAt = expiresAt
  }
}

extension HTTPField.Name {
  static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
}

extension PolicyServer {
  /// Makes something once: a repetition with the same `Idempotency-Key` and body gets the same answer, in whatever state
  /// the first one was interrupted; with another body it is refused. Key, answer and change are one transaction.
  func create(
    _ call: Call, _ caller: Caller, _ body: @Sendable (Change) throws -> KeptAnswer
  ) async throws -> Response {
    guard let key = try call.idempotencyKey(caller) else { return try await commit(caller, body).response }
    let digest = Digest.sha256(call.body)
    let answer = try await commit(caller) { change in
      if let kept = try change.transaction.keptRequest(key: key, tenant: caller.tenant, now: change.now) {
        guard kept.body == digest else {
          throw HTTPProblem(.idempotencyKeyReused, "Use a new key for another request.")
        }
        let bytes = try sealing.open(kept.sealedAnswer, tenant: caller.tenant, use: .answer, id: key.hexadecimal)
        return try JSONDecoder().decode(KeptAnswer.self, from: Data(bytes))
      }
      let answer = try body(change)
      let sealed = try sealing.seal(
        Array(JSONEncoder().encode(answer)), tenant: caller.tenant, use: .answer, id: key.hexadecimal)
      try change.transaction.insert(
        KeptRequest(
          key: key, tenant: caller.tenant, body: digest, sealedAnswer: sealed,
          expiresAt: change.now + KeptRequest.lifetime), now: change.now)
      return answer
    }
    return answer.response
  }
}

extension Call {
  /// What a request with a key is kept under: no caller meets another's, and no route another's.
  fileprivate func idempotencyKey(_ caller: Caller) throws -> [UInt8]? {
    let given = request.headers[values: .idempotencyKey]
    guard let key = given.first else { return nil }
    guard given.count == 1, (1...200).contains(key.utf8.count), key.utf8.allSatisfy({ (33...126).contains($0) }) else {
      throw HTTPProblem(.malformedRequest, "An Idempotency-Key has 1 to 200 visible ASCII characters.")
    }
    return Digest.sha256("\(caller.actor)\0\(request.method.rawValue) \(request.uri.path)\0\(key)".utf8)
  }
}
