public import CofferSystem

/// What a vault tells of a file or folder.
public struct FileAttributes: Sendable, Hashable {
  /// Never used twice in a vault.
  public let number: UInt64
  public let kind: NodeKind
  /// Bytes of content; 0 for a folder.
  public let byteCount: UInt64
  /// The twelve permission bits.
  public let permissions: UInt16
  public let modified: Timestamp
  public let created: Timestamp
  public let protection: ProtectionClass
  /// Rises with every change of the content: number and revision together name a version of a file.
  public let revision: UInt64

  public init(
    number: UInt64, kind: NodeKind, byteCount: UInt64, permissions: UInt16, modified: Timestamp, created: Timestamp,
    protection: ProtectionClass, revision: UInt64
  ) {
    self.number = number
    self.kind = kind
    self.byteCount = byteCount
    self.permissions = permissions
    self.modified = modified
    self.created = created
    self.protection = protection
    self.revision = revision
  }
}

/// One name in a listing.
public struct DirectoryEntry: Sendable, Hashable {
  public let name: [UInt8]
  public let attributes: FileAttributes

  public init(name: [UInt8], attributes: FileAttributes) {
    self.name = name
    self.attributes = attributes
  }
}

/// What a name stands for. The raw value is stored.
public enum NodeKind: UInt8, Sendable {
  case file = 1
  case directory = 2
}
