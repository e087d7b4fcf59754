internal import Foundation

/// A small disk that fills up, mounted at `disk` in a folder until the last reference to it goes. Mounting needs root.
public final class MountedDisk {
  public static let isPossible: Bool = {
    guard let folder = try? TemporaryFolder(), let disk = try? MountedDisk(in: folder, mebibytes: 1) else {
      return false
    }
    return withExtendedLifetime(disk) { true }
  }()

  public let path: String
  /// Kept, because it cannot be removed before the disk is unmounted.
  private let folder: TemporaryFolder

  /// - Parameter files: how many files and folders there can be; nil is as many as the system likes.
  public init(in folder: TemporaryFolder, mebibytes: Int, files: Int? = nil) throws {
    self.folder = folder
    path = folder("disk")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    guard
      try Self.run(
        "/usr/bin/mount", "-t", "tmpfs", "-o", "size=\(mebibytes)m,mode=700" + (files.map { ",nr_inodes=\($0)" } ?? ""),
        "tmpfs", path)
    else {
      throw POSIXError(.EPERM)
    }
  }

  deinit { _ = try? Self.run("/usr/bin/umount", "-l", path) }

  /// Takes all the room that is left, with a file of this name.
  public func fill(_ name: String = "filler") throws {
    _ = try Self.run("/bin/sh", "-c", "cat /dev/zero > '\(path)/\(name)' 2>/dev/null")
  }

  private static func run(_ program: String, _ arguments: String...) throws -> Bool {
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    return process.terminationStatus == 0
  }
}
