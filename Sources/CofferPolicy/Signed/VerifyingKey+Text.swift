public import CofferCrypto

extension VerifyingKey {
  /// How signed documents name this key: the first 16 bytes of its fingerprint, in lower-case hexadecimal.
  public var keyID: String { hexadecimal(fingerprint.prefix(16)) }

  /// base64url of the key's 32 bytes.
  public var text: String { Base64URL.encode(bytes) }

  /// Nil unless `text` is base64url, without padding, of 32 bytes that are a key.
  public init?(text: String) {
    guard text.utf8.count <= 64, let bytes = Base64URL.decode(text), let key = try? VerifyingKey(bytes: bytes) else {
      return nil
    }
    self = key
  }
}

/// In documents a key is its ``text``.
extension VerifyingKey: Codable {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let key = VerifyingKey(text: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a public key")
    }
    self = key
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

/// Lower-case hexadecimal. This module imports nothing that could read a file or a clock, the system layer included.
func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
  let digits = Array("0123456789abcdef".utf8)
  return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}
