/// Small named values that only the holder of the open vault can write or read.
public protocol SealedSettings: Sendable {
  /// The value with this name; nil when there is none.
  func value(_ name: String) throws -> [UInt8]?
  /// Stores a value durably before it returns; nil removes it.
  func set(_ name: String, _ value: [UInt8]?) throws
  /// The names that start with `prefix`, in no particular order.
  func names(prefix: String) throws -> [String]
}
