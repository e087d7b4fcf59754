/// The form of a media type (RFC 6838, 4.2).
enum MediaType {
  /// Whether `text` is `type/subtype` in lower case, each of 1 to 127 of the characters that the RFC restricts names to.
  static func isValid(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return parts.count == 2
      && parts.allSatisfy { part in
        (1...127).contains(part.count) && isLetterOrDigit(part.first!)
          && part.allSatisfy { isLetterOrDigit($0) || "!#$&-^_.+".utf8.contains($0) }
      }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}
