internal import Foundation

/// What a form sent, or a query: each name with all its values. Read once, and bounded by the size of its body.
struct FormValues: Sendable {
  private var values: [String: [String]] = [:]

  static let empty = FormValues()
  private static let maximumCount = 500

  private init() {}

  /// Nil when `text` is not `application/x-www-form-urlencoded`, is no UTF-8 or has too many fields.
  init?(_ bytes: some Sequence<UInt8>) {
    guard let text = String(validating: Array(bytes), as: UTF8.self) else { return nil }
    let pairs = text.split(separator: "&")
    guard pairs.count <= Self.maximumCount else { return nil }
    for pair in pairs {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(parts[0]), let value = Self.decoded(parts.count == 2 ? parts[1] : "") else {
        return nil
      }
      values[name, default: []].append(value)
    }
  }

  func all(_ name: String) -> [String] { values[name] ?? [] }

  /// The text of a field, without white space around it; nil when it is empty or absent.
  func text(_ name: String) -> String? {
    let text = all(name).first?.trimmingCharacters(in: .whitespacesAndNewlines)
    return text?.isEmpty == false ? text : nil
  }

  /// The text of a field as it was typed: a password may begin with a space.
  func exact(_ name: String) -> String { all(name).first ?? "" }

  func isOn(_ name: String) -> Bool { all(name).first == "on" }

  /// What stands in a field between commas or white space.
  func list(_ name: String) -> [String] {
    (text(name) ?? "").split { $0 == "," || $0.isWhitespace }.map(String.init)
  }

  private static func decoded(_ text: Substring) -> String? {
    text.replacing("+", with: " ").removingPercentEncoding
  }
}
