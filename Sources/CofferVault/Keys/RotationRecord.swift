internal import CofferCrypto
internal import CofferSystem

/// The key store's part of the passcode's key that each change of the passcode draws anew.
///
/// While a change is under way there are two, and the keybag says by a commitment which one is its own: whatever a crash
/// leaves, the keybag that is there has its component. When the change is complete there is one, and an older keybag
/// opens with nothing.
struct RotationRecord {
  /// One or two.
  let components: [SecretKey]

  func component(committedBy commitment: [UInt8]) -> SecretKey? {
    components.first { equalInConstantTime($0.commitment, commitment) }
  }

  /// `u8 0 ‖ u8 count ‖ count × component (32)`.
  func encoded() -> SecretBytes {
    SecretBytes(count: 2 + SecretKey.byteCount * components.count) { buffer in
      buffer[0] = 0
      buffer[1] = UInt8(components.count)
      for (place, component) in components.enumerated() {
        component.secretBytes.withUnsafeBytes { bytes in
          UnsafeMutableRawBufferPointer(rebasing: buffer[(2 + SecretKey.byteCount * place)...]).copyMemory(from: bytes)
        }
      }
    }
  }

  init(_ components: [SecretKey]) { self.components = components }

  init(decoding bytes: SecretBytes) throws(MalformedBytes) {
    let count = bytes.withUnsafeBytes { $0.count >= 2 && $0[0] == 0 ? Int($0[1]) : 0 }
    guard (1...2).contains(count), bytes.count == 2 + SecretKey.byteCount * count else { throw MalformedBytes() }
    var components: [SecretKey] = []
    for place in 0..<count {
      let start = 2 + SecretKey.byteCount * place
      let part = bytes.withUnsafeBytes {
        SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[start..<(start + SecretKey.byteCount)]))
      }
      guard let component = try? SecretKey(part) else { throw MalformedBytes() }
      components.append(component)
    }
    self.components = components
  }
}
