internal import Foundation

/// A disk that can be frozen, after which it takes nothing before it is thawed: mounted at `disk` in a folder until the last reference to it
/// goes. Needs root, and a system that mounts files.
public final class FrozenDisk {
  public static let isPossible: Bool = {
    guard let folder = try? TemporaryFolder(), let disk = try? FrozenDisk(in: folder, mebibytes: 8) else {
      return false
    }
    return withExtendedLifetime(disk) { (try? disk.freeze()) != nil && (try? disk.thaw()) != nil }
  }()

  public let path: String
  /// Kept, because it cannot be removed before the disk is unmounted.
  private let folder: TemporaryFolder

  public init(in folder: TemporaryFolder, mebibytes: Int) throws {
    self.folder = folder
    path = folder("disk")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let image = folder("disk.image")
    try Self.run("/usr/bin/truncate", "--size", "\(mebibytes)M", image)
    try Self.run("/usr/sbin/mkfs.ext4", "-q", "-F", image)
    try Self.run("/usr/bin/mount", "-o", "loop", image, path)
  }

  deinit {
    try? thaw()
    try? Self.run("/usr/bin/umount", "-l", path)
  }

  public func freeze() throws { try Self.run("/usr/sbin/fsfreeze", "--freeze", path) }
  public func thaw() throws { try Self.run("/usr/sbin/fsfreeze", "--unfreeze", path) }

  private static func run(_ program: String, _ arguments: String...) throws {
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw POSIXError(.EPERM) }
  }
}
