internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// The files that are open for writing through the kernel's pages, and of which of them these pages may be older than the file.
final class FileWriters: Sendable {
  private struct File {
    /// How often it is open so.
    var count = 0
    /// Somebody else has changed it since the last write.
    var isDisturbed = false
    /// Where the kernel was told last that it ends, because another mount had moved its end.
    var toldEnd: UInt64?
  }

  private let files = Mutex<[InodeNumber: File]>([:])
  /// Whether any is disturbed: asked at each write, without the lock.
  private let areDisturbed = Atomic(false)

  func didOpen(_ number: InodeNumber) { files.withLock { $0[number, default: File()].count += 1 } }

  func didClose(_ number: InodeNumber) {
    files.withLock { files in
      guard let present = files[number] else { return }
      if present.count > 1 {
        files[number]!.count -= 1
      } else {
        files[number] = nil
        if present.isDisturbed { noteDisturbance(files) }
      }
    }
  }

  func contains(_ number: InodeNumber) -> Bool { files.withLock { $0[number] != nil } }

  var isEmpty: Bool { files.withLock { $0.isEmpty } }

  var numbers: [InodeNumber] { files.withLock { Array($0.keys) } }

  /// Somebody changes a file, not through these pages.
  func disturb(_ number: InodeNumber) {
    files.withLock { files in
      guard files[number] != nil else { return }
      files[number]!.isDisturbed = true
      areDisturbed.store(true, ordering: .sequentiallyConsistent)
    }
  }

  /// Whether somebody has changed a file since this was asked last.
  func takeDisturbance(of number: InodeNumber) -> Bool {
    guard areDisturbed.load(ordering: .sequentiallyConsistent) else { return false }
    return files.withLock { files in
      guard files[number]?.isDisturbed == true else { return false }
      files[number]!.isDisturbed = false
      noteDisturbance(files)
      return true
    }
  }

  private func noteDisturbance(_ files: [InodeNumber: File]) {
    areDisturbed.store(files.values.contains { $0.isDisturbed }, ordering: .sequentiallyConsistent)
  }

  /// Whether the kernel is to be told that a file ends there, and takes note that it is. Not where it was told already, for a program may
  /// have stored to the last byte since.
  func tellsEnd(_ end: UInt64, of number: InodeNumber) -> Bool {
    files.withLock { files in
      guard let present = files[number], present.toldEnd != end else { return false }
      files[number]!.toldEnd = end
      return true
    }
  }

  /// A program of this mount moves a file's end: where another mount moves it back to where it was, that is news.
  func willMoveEnd(of number: InodeNumber) { files.withLock { $0[number]?.toldEnd = nil } }
}
