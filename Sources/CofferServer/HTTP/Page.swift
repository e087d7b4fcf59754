internal import CofferPolicy
internal import HummingbirdCore

/// Which part of a list a request asks for: `limit` entries after a cursor. A cursor is sealed for its company and list:
/// the number in it counts over all companies, and would tell each how busy the others are.
struct PageRequest: Sendable {
  static let standard = 100
  static let maximum = 500

  /// The number of the last entry that the caller has.
  let after: Int64
  let limit: Int
  private let sealing: KeySealing
  private let tenant: String
  private let list: String

  init(_ call: Call, _ caller: Caller, _ sealing: KeySealing) throws {
    (self.sealing, tenant, list) = (sealing, caller.tenant, call.request.uri.path)
    switch try call.query("limit") {
    case nil: limit = Self.standard
    case .some(let text):
      guard let limit = Int(text), (1...Self.maximum).contains(limit) else {
        throw HTTPProblem.invalid("limit", "is a number from 1 to \(Self.maximum)")
      }
      self.limit = limit
    }
    switch try call.query("cursor") {
    case nil: after = 0
    case .some(let text):
      guard text.utf8.count <= 128, let sealed = Base64URL.decode(text),
        let bytes = try? sealing.open(sealed, tenant: tenant, use: .cursor, id: list),
        let after = Int64(String(decoding: bytes, as: UTF8.self)), after > 0
      else { throw HTTPProblem.invalid("cursor", "is not one that this server gave") }
      self.after = after
    }
  }

  /// A page of `found`, which holds up to one entry more than was asked for.
  func page<Value, Shown: Encodable>(
    of found: [Numbered<Value>], _ show: (Value) throws -> Shown
  ) throws -> Page<Shown> {
    let shown = found.prefix(limit)
    let next = try found.count > limit ? shown.last.map { try cursor(after: $0.number) } : nil
    return Page(items: try shown.map { try show($0.value) }, next: next)
  }

  private func cursor(after number: Int64) throws -> String {
    Base64URL.encode(try sealing.seal(Array("\(number)".utf8), tenant: tenant, use: .cursor, id: list))
  }
}

/// Part of a list, in the order of creation. Without `next` it is the last one.
struct Page<Shown: Encodable>: Encodable {
  let items: [Shown]
  /// To be sent as `cursor`.
  let next: String?
}

/// A value with its place in the order of creation, by which lists are paged.
public typealias Numbered<Value> = (number: Int64, value: Value)
