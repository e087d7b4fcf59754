import CofferTestSupport

/// Changes bytes as a fault or an attacker might who knows that they are integers, and strings behind their lengths.
enum ByteMutation {
  /// Values at which integers go wrong.
  private static let edges: [UInt64] = [
    0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 50, 1 << 50 + 1, 1 << 63, .max,
    .max - 1,
  ]

  /// One to four changes; `other` gives parts to bring in.
  static func apply(to bytes: [UInt8], other: [UInt8], generator: inout SeededGenerator) -> [UInt8] {
    var result = bytes
    for _ in 0..<Int.random(in: 1...4, using: &generator) { change(&result, other, &generator) }
    return result
  }

  private static func change(_ bytes: inout [UInt8], _ other: [UInt8], _ generator: inout SeededGenerator) {
    guard !bytes.isEmpty else {
      bytes = other
      return
    }
    let place = Int.random(in: 0..<bytes.count, using: &generator)
    switch Int.random(in: 0..<8, using: &generator) {
    case 0, 1: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
    case 2: bytes[place] = UInt8.random(in: 0...255, using: &generator)
    case 3, 4:
      let width = [1, 2, 4, 8].randomElement(using: &generator) ?? 8
      let value = edges.randomElement(using: &generator) ?? 0
      for (offset, byte) in value.bigEndianBytes.suffix(width).enumerated() where place + offset < bytes.count {
        bytes[place + offset] = byte
      }
    case 5: bytes.removeSubrange(place..<min(bytes.count, place + Int.random(in: 1...16, using: &generator)))
    case 6: bytes.insert(contentsOf: generator.bytes(Int.random(in: 1...16, using: &generator)), at: place)
    default:
      guard !other.isEmpty else { return }
      let from = Int.random(in: 0..<other.count, using: &generator)
      let part = other[from..<min(other.count, from + Int.random(in: 1...32, using: &generator))]
      bytes.replaceSubrange(place..<min(bytes.count, place + part.count), with: part)
    }
  }
}

extension UInt64 {
  fileprivate var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}
