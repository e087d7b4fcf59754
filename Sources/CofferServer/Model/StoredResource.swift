internal import Foundation
internal import Hummingbird

/// What a company writes that is kept as it was written: JSON by kind and id.
public enum ResourceKind: String, CaseIterable, Sendable {
  case rule, classification, group, draft
  case fileType = "file-type"
  /// A device's groups as one of two people asked for them, by the device's id.
  case deviceGroups = "device-groups"

  /// How many a company may have. What the policy is made of is bounded again by the policy's own size.
  var maximum: Int64 { self == .draft ? 50 : 5000 }
}

/// One of them.
public struct StoredResource: Hashable, Sendable {
  public let kind: ResourceKind
  public let id: String
  /// JSON with sorted keys.
  public let body: String

  public init(kind: ResourceKind, id: String, body: String) {
    self.kind = kind
    self.id = id
    self.body = body
  }

  init(_ kind: ResourceKind, id: String, _ value: some Encodable) {
    self.init(kind: kind, id: id, body: String(decoding: Response.encoded(value), as: UTF8.self))
  }

  func decoded<Value: Decodable>(_ type: Value.Type) throws -> Value {
    guard let value = try? JSONDecoder().decode(type, from: Data(body.utf8)) else {
      throw StoreError.damaged("a \(kind.rawValue)")
    }
    return value
  }
}
