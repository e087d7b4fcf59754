internal import CofferPolicy

/// A JSON Schema (draft 2020-12), as OpenAPI 3.1 has it.
struct Schema {
  let json: JSONValue

  private init(_ members: [String: JSONValue]) { json = .object(members) }

  /// An object with these members and no other. Lists, pages and kept values are held to it as bodies are.
  static func object(_ required: [String: Schema] = [:], optional: [String: Schema] = [:]) -> Schema {
    var members: [String: JSONValue] = ["type": .string("object"), "additionalProperties": .boolean(false)]
    members["properties"] = .object(required.merging(optional) { first, _ in first }.mapValues(\.json))
    if !required.isEmpty { members["required"] = .array(required.keys.sorted().map(JSONValue.string)) }
    return Schema(members)
  }

  /// An object whose members' names the values choose.
  static func dictionary(of schema: Schema, maximum: Int? = nil) -> Schema {
    var members: [String: JSONValue] = ["type": .string("object"), "additionalProperties": schema.json]
    members["maxProperties"] = maximum.map { .integer(Int64($0)) }
    return Schema(members)
  }

  static func list(of schema: Schema, minimum: Int? = nil, maximum: Int? = nil, unique: Bool = false) -> Schema {
    var members: [String: JSONValue] = ["type": .string("array"), "items": schema.json]
    members["minItems"] = minimum.map { .integer(Int64($0)) }
    members["maxItems"] = maximum.map { .integer(Int64($0)) }
    if unique { members["uniqueItems"] = .boolean(true) }
    return Schema(members)
  }

  static func text(
    _ description: String? = nil, minimum: Int? = nil, maximum: Int? = nil, pattern: String? = nil,
    format: String? = nil
  ) -> Schema {
    var members: [String: JSONValue] = ["type": .string("string")]
    members["description"] = description.map(JSONValue.string)
    members["minLength"] = minimum.map { .integer(Int64($0)) }
    members["maxLength"] = maximum.map { .integer(Int64($0)) }
    members["pattern"] = pattern.map(JSONValue.string)
    members["format"] = format.map(JSONValue.string)
    return Schema(members)
  }

  static func integer(_ description: String? = nil, minimum: Int64? = nil, maximum: Int64? = nil) -> Schema {
    var members: [String: JSONValue] = ["type": .string("integer"), "format": .string("int64")]
    members["description"] = description.map(JSONValue.string)
    members["minimum"] = minimum.map(JSONValue.integer)
    members["maximum"] = maximum.map(JSONValue.integer)
    return Schema(members)
  }

  static let boolean = Schema(["type": .string("boolean")])

  /// One of these texts.
  static func choice(_ values: [String]) -> Schema {
    Schema(["type": .string("string"), "enum": .array(values.map(JSONValue.string))])
  }

  /// One of what an enumeration has.
  static func choice<Value: CaseIterable & RawRepresentable<String>>(of type: Value.Type) -> Schema {
    choice(type.allCases.map(\.rawValue))
  }

  static let anything = Schema([:])

  static func constant(_ value: JSONValue) -> Schema { Schema(["const": value]) }

  static func any(of schemas: [Schema]) -> Schema { Schema(["anyOf": .array(schemas.map(\.json))]) }

  /// What `Schemas.named` has under this name.
  static func reference(_ name: Schemas.Name) -> Schema {
    Schema(["$ref": .string("#/components/schemas/\(name.title)")])
  }
}
