import Foundation

/// A file system of a few megabytes in memory, mounted for one test.
final class SmallDisk {
  /// Mounting needs root.
  static let isPossible: Bool = {
    guard let desk = try? Desk(), let disk = try? SmallDisk(desk, "disk", mebibytes: 1) else { return false }
    return withExtendedLifetime(disk) { true }
  }()

  private let path: String
  private let desk: Desk

  init(_ desk: Desk, _ name: String, mebibytes: Int) throws {
    self.desk = desk
    path = desk.path(name)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let mount = try desk.run("/usr/bin/mount", ["-t", "tmpfs", "-o", "size=\(mebibytes)m,mode=700", "tmpfs", path])
    guard mount.code == 0 else { throw POSIXError(.EPERM) }
  }

  deinit { _ = try? desk.run("/usr/bin/umount", ["-l", path]) }
}
