/// When the content of a file can be read. The raw value is stored.
public enum ProtectionClass: UInt8, CaseIterable, Sendable {
  /// While the vault is unlocked. The default.
  case complete = 1
  /// As `complete`; while locked, a file that is open stays so and a new one can be made.
  case completeUnlessOpen = 2
  /// From the first unlock on.
  case untilFirstUnlock = 3
  /// Whenever the device's key store can be read.
  case none = 4
}
