#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The room on a file system: statvfs(3).
public struct FileSystemSpace: Sendable {
  /// Bytes in a block, which the counts are in.
  public let blockSize: UInt64
  public let blocks: UInt64
  public let freeBlocks: UInt64
  /// Those of them that a user without privileges may take.
  public let availableBlocks: UInt64
  public let files: UInt64
  public let freeFiles: UInt64

  /// Blocks that nobody can take though they count as free: ext4 keeps up to 4,096 for itself.
  private static let blocksOfFileSystem: UInt64 = 4096

  /// Bytes that this process may take: some are the administrator's alone.
  public var bytesForProcess: UInt64 {
    let forRoot = geteuid() == 0 && freeBlocks > Self.blocksOfFileSystem ? freeBlocks - Self.blocksOfFileSystem : 0
    let (count, overflows) = max(availableBlocks, forRoot).multipliedReportingOverflow(by: blockSize)
    return overflows ? .max : count
  }
}

extension OwnedDescriptor {
  /// The room on the file system that the file lies on.
  public func space() throws(SystemError) -> FileSystemSpace {
    var found = statvfs()
    guard fstatvfs(number, &found) == 0 else { throw .last("fstatvfs") }
    return FileSystemSpace(
      blockSize: UInt64(found.f_frsize), blocks: UInt64(found.f_blocks), freeBlocks: UInt64(found.f_bfree),
      availableBlocks: UInt64(found.f_bavail), files: UInt64(found.f_files), freeFiles: UInt64(found.f_ffree))
  }
}
