internal import CofferPolicy

/// base32 (RFC 4648, section 6) in lower case without padding, read strictly.
public enum Base32 {
  private static let code = BitText("abcdefghijklmnopqrstuvwxyz234567")

  public static func encode(_ bytes: [UInt8]) -> String { code.encode(bytes) }

  /// Nil for what is no text of bytes (`BitText.decode`).
  public static func decode(_ text: some Collection<UInt8>) -> [UInt8]? { code.decode(text) }
}
