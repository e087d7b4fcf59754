internal import CofferSystem
internal import Synchronization

/// A file that takes up room so that a full disk still has some for a commit: without it nothing could be removed from a
/// vault on a full disk, because removing is a commit too.
final class Ballast: Sendable {
  static let byteCount = 2 << 20
  private let files: FileSystem
  private let folder: OwnedDescriptor
  private let isWhole = Mutex(false)

  init(files: FileSystem, vaultFolder: OwnedDescriptor) {
    self.files = files
    folder = vaultFolder
  }

  /// Makes the file where it is missing, or as much of it as the disk has room for; the rest the next time.
  func restore() {
    isWhole.withLock { isWhole in
      if isWhole { return }
      guard let file = try? files.open(VaultFormat.ballast, [.writeOnly, .create, .noFollow], in: folder),
        let status = try? file.status(), status.kind == .file
      else { return }
      let zeros = [UInt8](repeating: 0, count: 64 << 10)
      var count = Int(clamping: status.byteCount)
      while count < Self.byteCount {
        let part = min(zeros.count, Self.byteCount - count)
        guard (try? zeros[..<part].withUnsafeBytes { try file.writeAll($0, at: UInt64(count)) }) != nil else { return }
        count += part
      }
      isWhole = true
    }
  }

  /// Gives its room back; `false` where there was none.
  func release() -> Bool {
    isWhole.withLock { isWhole in
      isWhole = false
      return (try? files.unlink(VaultFormat.ballast, in: folder)) ?? false
    }
  }
}
