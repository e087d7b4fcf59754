/// A JSON object all of whose fields are known: a misspelt field is refused, not passed over.
protocol StrictBody: Decodable {
  associatedtype CodingKeys: CodingKey & CaseIterable
}

/// Decodes a ``StrictBody``.
struct Strict<Body: StrictBody>: Decodable {
  let body: Body

  private struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  init(from decoder: any Decoder) throws {
    let known = Set(Body.CodingKeys.allCases.map(\.stringValue))
    // The names come from the client, so that they are shown only as far as they are short.
    for key in try decoder.container(keyedBy: AnyKey.self).allKeys where !known.contains(key.stringValue) {
      throw HTTPProblem.invalid(String(key.stringValue.prefix(40)), "is not a field of this resource")
    }
    body = try Body(from: decoder)
  }
}
