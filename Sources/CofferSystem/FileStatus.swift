#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// What `stat` tells of a file.
public struct FileStatus: Sendable, Hashable {
  public enum Kind: Sendable, Hashable {
    case file, directory, symbolicLink, other
  }

  public let kind: Kind
  /// Bytes.
  public let byteCount: UInt64
  /// Bytes that the file takes on the disk: fewer than `byteCount` where it has holes.
  public let allocatedByteCount: UInt64
  /// The twelve permission bits.
  public let permissions: UInt16
  public let modified: Timestamp
  public let device: UInt64
  public let inode: UInt64
  public let owner: UInt32
  /// Names that it has; for a directory, as its file system counts.
  public let linkCount: UInt64

  init(_ value: stat) {
    kind =
      switch value.st_mode & S_IFMT {
      case S_IFREG: .file
      case S_IFDIR: .directory
      case S_IFLNK: .symbolicLink
      default: .other
      }
    byteCount = UInt64(max(0, value.st_size))
    allocatedByteCount = UInt64(max(0, value.st_blocks)) * 512
    permissions = UInt16(value.st_mode & 0o7777)
    #if canImport(Darwin)
      let time = value.st_mtimespec
    #else
      let time = value.st_mtim
    #endif
    modified = Timestamp(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
    device = UInt64(truncatingIfNeeded: value.st_dev)
    inode = UInt64(truncatingIfNeeded: value.st_ino)
    owner = value.st_uid
    linkCount = UInt64(value.st_nlink)
  }

  /// Whether both are of one file, under whatever name, as long as somebody has it open.
  public func isSameFile(as other: FileStatus) -> Bool { (device, inode) == (other.device, other.inode) }
}
