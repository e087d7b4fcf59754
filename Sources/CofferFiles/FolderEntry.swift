/// One name as a folder is read in portions.
public struct FolderEntry: Sendable, Hashable {
  public let name: [UInt8]
  public let number: InodeNumber
  public let kind: NodeKind
  /// Where to go on behind this name: 2⁶² to 2⁶³-1, so that it fits an `off_t` and leaves room for `.` and `..`.
  public let cookie: UInt64
  /// Nil where they were not asked for.
  public let attributes: FileAttributes?

  public init(name: [UInt8], number: InodeNumber, kind: NodeKind, cookie: UInt64, attributes: FileAttributes?) {
    self.name = name
    self.number = number
    self.kind = kind
    self.cookie = cookie
    self.attributes = attributes
  }
}
