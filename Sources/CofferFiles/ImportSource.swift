public import CofferSystem

/// Bytes to be stored, and what is known of them.
public struct ImportSource: Sendable {
  public let descriptor: OwnedDescriptor
  /// The size of a file that can be read at any offset; nil for a stream.
  public let byteCount: UInt64?
  public let permissions: UInt16
  /// Nil: now.
  public let modified: Timestamp?

  public init(descriptor: OwnedDescriptor, byteCount: UInt64?, permissions: UInt16, modified: Timestamp?) {
    self.descriptor = descriptor
    self.byteCount = byteCount
    self.permissions = permissions
    self.modified = modified
  }
}
