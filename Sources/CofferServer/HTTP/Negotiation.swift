internal import HTTPTypes
internal import Hummingbird

/// Which types a request accepts and brings (RFC 9110, sections 12.5.1 and 8.3).
enum Negotiation {
  /// Whether Accept headers admit `type`. Without one, everything is accepted.
  static func accepts(_ type: String, _ headers: [String]) -> Bool {
    if headers.isEmpty { return true }
    // The most specific range decides; q=0 excludes it.
    let ranges = headers.flatMap { $0.split(separator: ",") }.map(Range.init)
    for name in [type, "\(type.prefix { $0 != "/" })/*", "*/*"] {
      if let range = ranges.first(where: { $0.name == name }) { return range.isAccepted }
    }
    return false
  }

  private struct Range {
    let name: String
    let isAccepted: Bool

    init(_ text: Substring) {
      let parts = text.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
      name = parts.first ?? ""
      isAccepted = !parts.dropFirst().contains { part in
        part.hasPrefix("q=") && Double(part.dropFirst(2)).map { $0 <= 0 } ?? true
      }
    }
  }

  /// Whether a Content-Type header names `type`, in UTF-8 if it names a character set.
  static func isContent(_ header: String?, of type: MediaType) -> Bool {
    guard let header, let given = MediaType(from: header), given.isType(type), given.subType == type.subType else {
      return false
    }
    guard let parameter = given.parameter, parameter.name.lowercased() == "charset" else { return true }
    return parameter.value.lowercased() == "utf-8"
  }
}
