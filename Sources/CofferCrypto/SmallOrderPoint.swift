/// The points of edwards25519 whose order divides 8 (RFC 8032, section 5.1). As a public key, one of them has signatures
/// that anybody can make, and that fit many messages.
enum SmallOrderPoint {
  /// The y coordinates, little-endian: of the points of orders 4, 1, 8, 8 and 2, and the two of them that also fit into
  /// 255 bits with p added, which decoders differ about.
  private static let coordinates: Set<[UInt8]> = [
    small(0),
    small(1),
    [
      0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
      0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
      0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
      0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
    nearPrime(0xec),
    nearPrime(0xed),
    nearPrime(0xee),
  ]

  /// Whether 32 bytes encode one of them, whatever the sign of x.
  static func isEncoded(by bytes: [UInt8]) -> Bool {
    guard bytes.count == VerifyingKey.byteCount else { return false }
    return coordinates.contains(bytes.dropLast() + [bytes[VerifyingKey.byteCount - 1] & 0x7f])
  }

  private static func small(_ number: UInt8) -> [UInt8] { [number] + [UInt8](repeating: 0, count: 31) }

  /// p = 2²⁵⁵ − 19 ends in 0xed.
  private static func nearPrime(_ first: UInt8) -> [UInt8] { [first] + [UInt8](repeating: 0xff, count: 30) + [0x7f] }
}
