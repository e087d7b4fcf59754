/// base32 (RFC 4648, section 6) in lower case without padding, read strictly.
public enum Base32 {
  public static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    var buffer: UInt32 = 0
    var bits = 0
    for byte in bytes {
      buffer = buffer << 8 | UInt32(byte)
      bits += 8
      while bits >= 5 {
        bits -= 5
        text.append(alphabet[Int(buffer >> UInt32(bits) & 31)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(buffer << UInt32(5 - bits) & 31)]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Nil when `text` holds any other character, has an impossible length, or has bits set behind its last byte.
  public static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var buffer: UInt32 = 0
    var bits = 0
    for character in text {
      guard let value = alphabet.firstIndex(of: character) else { return nil }
      buffer = buffer << 5 | UInt32(value)
      bits += 5
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
      }
    }
    return bits < 5 && buffer & (1 << UInt32(bits) - 1) == 0 ? bytes : nil
  }

  private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)
}
