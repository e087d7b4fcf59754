internal import CofferSystem
internal import Synchronization

/// A file that takes up room so that a full disk still has some for a commit: without it nothing could be removed from a
/// vault on a full disk, because removing is a commit too.
final class Ballast: Sendable {
  static let byteCount = 2 << 20
  private let files: FileSystem
  private let folder: OwnedDescriptor
  private let state = Mutex((isWhole: false, borrowers: 0))

  init(files: FileSystem, vaultFolder: OwnedDescriptor) {
    self.files = files
    folder = vaultFolder
  }

  /// Makes the file where it is missing, or as much of it as the disk has room for; the rest the next time. Not while somebody
  /// has its room.
  func restore() {
    state.withLock { state in
      if state.isWhole || state.borrowers > 0 { return }
      guard
        let file = try? files.open(VaultFormat.ballast, [.writeOnly, .create, .noFollow, .nonBlocking], in: folder),
        let status = try? file.status(), status.kind == .file
      else { return }
      let zeros = [UInt8](repeating: 0, count: 64 << 10)
      var count = Int(clamping: status.byteCount)
      while count < Self.byteCount {
        let part = min(zeros.count, Self.byteCount - count)
        guard (try? zeros[..<part].withUnsafeBytes { try file.writeAll($0, at: UInt64(count)) }) != nil else { return }
        count += part
      }
      state.isWhole = true
    }
  }

  /// Gives its room to the caller, until ``takeBack()``; `false` where there is none.
  func lend() -> Bool {
    state.withLock { state in
      state.isWhole = false
      guard (try? files.unlink(VaultFormat.ballast, in: folder)) ?? false else { return false }
      state.borrowers += 1
      return true
    }
  }

  /// The caller has used what it needed of the room.
  func takeBack() { state.withLock { $0.borrowers -= 1 } }
}
