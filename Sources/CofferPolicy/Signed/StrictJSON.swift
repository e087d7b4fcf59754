internal import Foundation

/// JSON of signed payloads. What is read must be exactly what this version would write: a member that it does not know
/// might narrow what the others allow, so a payload with one is refused rather than half obeyed.
enum StrictJSON {
  static func encode(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return Array(try encoder.encode(value))
    } catch {
      fatalError("a policy document has no value that JSON lacks")
    }
  }

  /// Throws ``PolicyRefusal/malformed(_:)`` with `what`.
  static func decode<Value: Codable>(
    _ type: Value.Type, from bytes: [UInt8], _ what: String
  ) throws(PolicyRefusal) -> Value {
    let data = Data(bytes)
    guard let value = try? JSONDecoder().decode(type, from: data),
      let received = canonical(data), received == canonical(Data(encode(value)))
    else { throw .malformed(what) }
    return value
  }

  /// As ``decode(_:from:_:)``, but tells a payload of another schema from one that is malformed.
  static func decode<Value: Codable>(
    _ type: Value.Type, from bytes: [UInt8], _ what: String, schema: Int
  ) throws(PolicyRefusal) -> Value {
    if let found = try? JSONDecoder().decode(Schema.self, from: Data(bytes)).schema, found != schema {
      throw .unsupportedSchema(found)
    }
    return try decode(type, from: bytes, what)
  }

  private struct Schema: Decodable {
    let schema: Int
  }

  private static func canonical(_ data: Data) -> Data? {
    guard let object = try? JSONSerialization.jsonObject(with: data) else { return nil }
    return try? JSONSerialization.data(withJSONObject: object, options: [.sortedKeys])
  }
}
