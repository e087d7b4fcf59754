/// base64url (RFC 4648, section 5) without padding, read strictly.
public enum Base64URL {
  private static let code = BitText("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

  public static func encode(_ bytes: some Sequence<UInt8>) -> String { code.encode(bytes) }

  /// Nil for what is no text of bytes (``BitText/decode(_:)``).
  public static func decode(_ text: some Collection<UInt8>) -> [UInt8]? { code.decode(text) }

  public static func decode(_ text: some StringProtocol) -> [UInt8]? { decode(Array(text.utf8)) }
}
