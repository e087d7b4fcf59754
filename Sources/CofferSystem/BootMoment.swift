/// A moment on a clock that counts from the system's start, through sleep, and that setting the time does not move.
public struct BootMoment: Hashable, Sendable {
  public static let bootByteCount = 16

  /// Which start of the system it counts from: 16 bytes, drawn anew at each. Where the system does not say, this
  /// process's own: no other one counts on from it.
  public var boot: [UInt8]
  public var seconds: UInt64

  public init(boot: [UInt8], seconds: UInt64) {
    precondition(boot.count == Self.bootByteCount)
    self.boot = boot
    self.seconds = seconds
  }

  static let unknownBoot = Randomness.bytes(bootByteCount)

  /// The bytes of a UUID's text, or an unknown boot where it is none.
  static func boot(uuid text: String) -> [UInt8] {
    let digits = text.filter { $0.isHexDigit }
    guard let bytes = [UInt8](hexadecimal: digits), bytes.count == bootByteCount else { return unknownBoot }
    return bytes
  }
}
