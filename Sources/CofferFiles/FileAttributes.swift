public import CofferSystem

/// What a vault tells of a file or folder.
public struct FileAttributes: Sendable, Hashable {
  public let number: InodeNumber
  public let kind: NodeKind
  /// Bytes of content; the length of a symbolic link's target; 0 for everything else.
  public var byteCount: UInt64
  /// Bytes that the content takes where it is stored: less than `byteCount` in a file with holes.
  public var storedByteCount: UInt64
  /// The twelve permission bits.
  public let permissions: UInt16
  public let owner: FileOwner
  /// Names of a file; for a folder 2 and one for each folder in it, as POSIX has it. 0 for what has no name.
  public var linkCount: UInt32
  public let accessed: Timestamp
  public var modified: Timestamp
  /// The last change of content or attributes.
  public var changed: Timestamp
  public let created: Timestamp
  public let protection: ProtectionClass
  /// Rises with every change of the content: number and revision together name a version of a file.
  public var revision: UInt64

  public init(
    number: InodeNumber, kind: NodeKind, byteCount: UInt64, storedByteCount: UInt64, permissions: UInt16,
    owner: FileOwner,
    linkCount: UInt32, accessed: Timestamp, modified: Timestamp, changed: Timestamp, created: Timestamp,
    protection: ProtectionClass, revision: UInt64
  ) {
    self.number = number
    self.kind = kind
    self.byteCount = byteCount
    self.storedByteCount = storedByteCount
    self.permissions = permissions
    self.owner = owner
    self.linkCount = linkCount
    self.accessed = accessed
    self.modified = modified
    self.changed = changed
    self.created = created
    self.protection = protection
    self.revision = revision
  }
}

/// The user and group that a file belongs to, as numbers. The vault keeps them and enforces nothing by them.
public struct FileOwner: Sendable, Hashable {
  public var user: UInt32
  public var group: UInt32

  public init(user: UInt32, group: UInt32) {
    self.user = user
    self.group = group
  }

  /// The process's effective user and group.
  public static var process: FileOwner { FileOwner(user: ProcessIdentity.user, group: ProcessIdentity.group) }
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
public enum NodeKind: UInt8, Sendable, CaseIterable {
  case file = 1
  case directory = 2
  case symbolicLink = 3
  /// A named pipe: a name that a mounted vault gives meaning to.
  case fifo = 4
  /// A socket's name, likewise.
  case socket = 5
}
