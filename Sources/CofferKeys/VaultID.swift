internal import CofferSystem

/// The random identity of a vault: 16 bytes.
public struct VaultID: Hashable, Sendable, CustomStringConvertible {
  public static let byteCount = 16
  public let bytes: [UInt8]

  /// A new random identity.
  public init() { bytes = Randomness.bytes(Self.byteCount) }

  /// Nil unless there are 16 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  /// 32 hexadecimal digits.
  public var description: String { bytes.hexadecimal }
}
