public import CofferSystem

/// Bytes to be stored, and what is known of them.
public struct ImportSource: Sendable {
  public let descriptor: OwnedDescriptor
  /// The size of a file that can be read at any offset; nil for a stream.
  public let byteCount: UInt64?
  public let permissions: UInt16
  /// Nil: now.
  public let modified: Timestamp?
  /// What makes content of a stream; nil where its bytes are the content.
  public let decoder: (any ContentDecoder)?

  public init(descriptor: OwnedDescriptor, byteCount: UInt64?, permissions: UInt16, modified: Timestamp?) {
    self.descriptor = descriptor
    self.byteCount = byteCount
    self.permissions = permissions
    self.modified = modified
    decoder = nil
  }

  /// A stream from the descriptor's position on, whose content `decoder` makes. A decoder serves for one stream.
  public init(
    descriptor: OwnedDescriptor, decoder: any ContentDecoder, permissions: UInt16, modified: Timestamp?
  ) {
    self.descriptor = descriptor
    byteCount = nil
    self.permissions = permissions
    self.modified = modified
    self.decoder = decoder
  }
}
