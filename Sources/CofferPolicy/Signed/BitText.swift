/// Bytes as characters of some bits each (RFC 4648) without padding, read strictly: one text for each sequence of bytes.
public struct BitText: Sendable {
  private let alphabet: [UInt8]
  /// Bits in a character.
  private let width: Int
  /// By character; 255 for those of no value.
  private let values: [UInt8]

  /// - Parameter alphabet: the characters of the values from 0 on; a power of two, at most 64.
  public init(_ alphabet: String) {
    self.alphabet = Array(alphabet.utf8)
    width = self.alphabet.count.trailingZeroBitCount
    var values = [UInt8](repeating: 255, count: 256)
    for (value, character) in self.alphabet.enumerated() { values[Int(character)] = UInt8(value) }
    self.values = values
  }

  public func encode(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    var buffer: UInt32 = 0
    var bits = 0
    for byte in bytes {
      buffer = buffer << 8 | UInt32(byte)
      bits += 8
      while bits >= width {
        bits -= width
        text.append(alphabet[Int(buffer >> UInt32(bits)) & (alphabet.count - 1)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(buffer << UInt32(width - bits)) & (alphabet.count - 1)]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Nil when `text` holds any other character (padding and white space included), has an impossible length, or has
  /// bits set behind its last byte.
  public func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count * width / 8)
    var buffer: UInt32 = 0
    var bits = 0
    for character in text {
      let value = values[Int(character)]
      guard value != 255 else { return nil }
      buffer = buffer << UInt32(width) | UInt32(value)
      bits += width
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
      }
    }
    return bits < width && buffer & (1 << UInt32(bits) - 1) == 0 ? bytes : nil
  }
}
