public import CofferSystem

/// A key that a person keeps on paper: 160 random bits.
///
/// As text it is 36 symbols of Crockford's base32 in groups of four: 32 for the key, and four for the first 20 bits of
/// SHA-256("coffer recovery key" ‖ key), by which a slip of the pen is told from another key.
public struct RecoveryKey: Sendable, CustomStringConvertible, CustomReflectable {
  public static let byteCount = 20
  private static let symbols = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
  private static let keySymbolCount = 32
  private static let symbolCount = 36
  private static let groupSize = 4

  private let secret: SecretBytes

  /// Why a text is no recovery key.
  public enum Mistake: Error, Equatable, Sendable, CustomStringConvertible {
    /// A character that no recovery key has.
    case character
    /// Symbols are missing, or there are too many; how many there are.
    case length(Int)
    /// A symbol is another than it was.
    case checksum

    public var description: String {
      switch self {
      case .character: "a recovery key has only digits and the letters A to Z without I, L, O and U"
      case .length(let count): "a recovery key has \(RecoveryKey.symbolCount) symbols, and this has \(count)"
      case .checksum: "the recovery key is mistyped: a symbol is wrong, or two are exchanged"
      }
    }
  }

  /// A new random key.
  public init() { secret = SecretBytes(count: Self.byteCount) { Randomness.fill($0) } }

  /// Reads a key as somebody typed it: in either case, with hyphens and spaces anywhere or nowhere, O for 0, and I or L
  /// for 1.
  public init(text: SecretBytes) throws(Mistake) {
    var count = 0
    var isClean = true
    let values = SecretBytes(count: Self.symbolCount) { values in
      text.withUnsafeBytes { text in
        for character in text where !Self.isSeparator(character) {
          guard let value = Self.value(character) else {
            isClean = false
            return
          }
          if count < values.count { values[count] = value }
          count += 1
        }
      }
    }
    guard isClean else { throw .character }
    guard count == Self.symbolCount else { throw .length(count) }
    let secret = SecretBytes(count: Self.byteCount) { bytes in
      values.withUnsafeBytes { values in
        // Eight symbols are five bytes.
        for group in 0..<(Self.keySymbolCount / 8) {
          var bits: UInt64 = 0
          for symbol in 0..<8 { bits = bits << 5 | UInt64(values[8 * group + symbol]) }
          for byte in 0..<5 { bytes[5 * group + byte] = UInt8(truncatingIfNeeded: bits >> UInt64(32 - 8 * byte)) }
        }
      }
    }
    let checksum = Array(values.withUnsafeBytes { Array($0[Self.keySymbolCount...]) })
    guard equalInConstantTime(checksum, Self.checksum(secret)) else { throw .checksum }
    self.secret = secret
  }

  /// The text, 44 bytes: nine groups with hyphens between.
  public var text: SecretBytes {
    let checksum = Self.checksum(secret)
    let length = Self.symbolCount + Self.symbolCount / Self.groupSize - 1
    return SecretBytes(count: length) { text in
      secret.withUnsafeBytes { bytes in
        for place in 0..<Self.symbolCount {
          let value =
            place < Self.keySymbolCount ? Self.fiveBits(place, of: bytes) : checksum[place - Self.keySymbolCount]
          let position = place + place / Self.groupSize
          text[position] = Self.symbols[Int(value)]
          if position > 0, place % Self.groupSize == 0 { text[position - 1] = UInt8(ascii: "-") }
        }
      }
    }
  }

  /// The key that wraps a vault's master key: HKDF-SHA256 of the 20 bytes.
  public func key(_ label: String, context: [UInt8]) -> SecretKey { .derived(from: secret, label, context: context) }

  private static func fiveBits(_ place: Int, of bytes: UnsafeRawBufferPointer) -> UInt8 {
    let (byte, bit) = (5 * place).quotientAndRemainder(dividingBy: 8)
    let next = byte + 1 < bytes.count ? bytes[byte + 1] : 0
    let pair = UInt16(bytes[byte]) << 8 | UInt16(next)
    return UInt8(truncatingIfNeeded: pair >> UInt16(11 - bit)) & 31
  }

  private static func checksum(_ secret: SecretBytes) -> [UInt8] {
    let bytes = clearingStack {
      var digest = StreamingDigest()
      digest.update(Array("coffer recovery key".utf8))
      secret.withUnsafeBytes { digest.update($0) }
      return digest.finalize()
    }
    let bits = UInt32(bytes[0]) << 16 | UInt32(bytes[1]) << 8 | UInt32(bytes[2])
    return (0..<4).map { UInt8(truncatingIfNeeded: bits >> UInt32(19 - 5 * $0)) & 31 }
  }

  private static func isSeparator(_ character: UInt8) -> Bool {
    [UInt8(ascii: "-"), UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n")]
      .contains(character)
  }

  private static func value(_ character: UInt8) -> UInt8? {
    let upper = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(character) ? character - 32 : character
    switch upper {
    case UInt8(ascii: "O"): return 0
    case UInt8(ascii: "I"), UInt8(ascii: "L"): return 1
    default: return symbols.firstIndex(of: upper).map { UInt8($0) }
    }
  }

  public var description: String { "<recovery key>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
