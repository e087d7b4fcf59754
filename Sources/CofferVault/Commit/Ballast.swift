internal import CofferSystem
internal import Synchronization

/// A file that takes up room so that a full disk still has some for a commit: without it nothing could be removed from a
/// vault on a full disk, because removing is a commit too.
final class Ballast: Sendable {
  static let byteCount = 2 << 20
  private let files: FileSystem
  private let folder: OwnedDescriptor
  private let isThere = Mutex(false)

  init(files: FileSystem, vaultFolder: OwnedDescriptor) {
    self.files = files
    folder = vaultFolder
  }

  /// Makes the file where it is missing, or as much of it as the disk has room for.
  func restore() {
    isThere.withLock { isThere in
      if isThere { return }
      if let status = try? files.status(of: VaultFormat.ballast, in: folder),
        status.kind == .file, status.byteCount == UInt64(Self.byteCount)
      {
        isThere = true
        return
      }
      guard let file = try? files.open(VaultFormat.ballast, [.writeOnly, .create, .truncate, .noFollow], in: folder)
      else { return }
      isThere = true
      let zeros = [UInt8](repeating: 0, count: 64 << 10)
      for _ in 0..<(Self.byteCount / zeros.count) where (try? file.writeAll(zeros)) == nil { return }
    }
  }

  /// Gives its room back; `false` where there was none.
  func release() -> Bool {
    isThere.withLock { isThere in
      isThere = false
      return (try? files.unlink(VaultFormat.ballast, in: folder)) ?? false
    }
  }
}
