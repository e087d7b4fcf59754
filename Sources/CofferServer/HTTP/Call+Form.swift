internal import Foundation

extension Call {
  /// The body as `application/x-www-form-urlencoded`: these parameters and no other, each at most once, without a NUL.
  func form(_ names: [String]) throws -> [String: String] {
    let malformed = HTTPProblem(.malformedRequest, "The body is not a form.")
    guard let text = String(validating: body, as: UTF8.self) else { throw malformed }
    var form: [String: String] = [:]
    for pair in text.split(separator: "&", omittingEmptySubsequences: false) {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let name = Self.decoded(parts[0]), let value = Self.decoded(parts[1]),
        names.contains(name), !value.utf8.contains(0), form.updateValue(value, forKey: name) == nil
      else { throw malformed }
    }
    return form
  }

  private static func decoded(_ text: Substring) -> String? {
    text.replacing("+", with: " ").removingPercentEncoding
  }
}
