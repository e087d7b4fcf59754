internal import CofferCrypto
internal import CofferSystem

/// A strong entity tag and the two conditions that use it (RFC 9110, sections 8.8.3, 13.1.1 and 13.1.2).
struct EntityTag: Equatable, CustomStringConvertible {
  /// With its quotation marks.
  let description: String

  /// The tag of a representation whose digest is known. `digest` holds hexadecimal digits only.
  init(digest: String) { description = "\"\(digest)\"" }

  /// The tag of a representation's bytes.
  init(of bytes: some Sequence<UInt8>) { self.init(digest: Digest.sha256(bytes).hexadecimal) }

  /// Whether If-Match lets the request through: strong comparison.
  func satisfies(ifMatch header: String) -> Bool {
    header == "*" || Self.tags(in: header).contains(description)
  }

  /// Whether If-None-Match says that the client has this: weak comparison.
  func isKnown(ifNoneMatch header: String) -> Bool {
    header == "*" || Self.tags(in: header).contains { $0 == description || $0 == "W/\(description)" }
  }

  /// Our tags have no comma, so a list may be split at each.
  private static func tags(in header: String) -> [String] {
    header.split(separator: ",").map { String($0.trimming(while: { $0 == " " || $0 == "\t" })) }
  }
}

extension Substring {
  fileprivate func trimming(while predicate: (Character) -> Bool) -> Substring {
    var result = drop(while: predicate)
    while let last = result.last, predicate(last) { result.removeLast() }
    return result
  }
}
