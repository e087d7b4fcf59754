internal import CFuse3
internal import CofferContainer
internal import CofferSystem
internal import Glibc
internal import Synchronization

/// The files that programs have open. The kernel keeps a reference of ours to each, and gives it back with `release`; but not where
/// its connection was torn.
final class OpenFiles: Sendable {
  private struct State {
    /// By what the kernel keeps, without ``bits``.
    var files: [UInt: ViewFile] = [:]
    var isOver = false
  }

  private let state = Mutex(State())

  /// In the reference, whose lowest bits are zero.
  private static let directBit: UInt64 = 1
  private static let syncedBit: UInt64 = 2
  private static let bits = directBit | syncedBit

  /// - Parameter isDirect: the kernel uses no pages of its own for what is written and read.
  func keep(_ file: ViewFile, isDirect: Bool, in info: inout fuse_file_info) {
    let reference = UInt(bitPattern: Unmanaged.passUnretained(file).toOpaque())
    let isOver = state.withLock { state in
      state.files[reference] = file
      return state.isOver
    }
    if isOver { try? file.close() }
    // The flags of its opening, which nobody can change later.
    let isSynced = info.flags & O_DSYNC != 0
    info.fh = UInt64(reference) | (isDirect ? Self.directBit : 0) | (isSynced ? Self.syncedBit : 0)
    info.direct_io = isDirect ? 1 : 0
  }

  /// Ends what `keep` began.
  func giveBack(_ info: UnsafeMutablePointer<fuse_file_info>?) -> ViewFile? {
    guard let info else { return nil }
    return state.withLock { $0.files.removeValue(forKey: UInt(info.pointee.fh & ~Self.bits)) }
  }

  /// Ends the use of all, and of those that are opened yet, though the kernel may name them still.
  func closeAll() {
    let files = state.withLock { state in
      state.isOver = true
      return Array(state.files.values)
    }
    for file in files { try? file.close() }
  }

  /// The kernel names none any more, nor gives any back.
  func forgetAll() {
    closeAll()
    state.withLock { $0.files = [:] }
  }

  /// What `keep` was told.
  static func isDirect(_ info: UnsafeMutablePointer<fuse_file_info>?) -> Bool {
    info.map { isDirect($0.pointee) } ?? false
  }

  static func isDirect(_ info: fuse_file_info) -> Bool { info.fh & directBit != 0 }

  /// What is written to it is to be durable before the answer (O_SYNC and O_DSYNC).
  static func isSynced(_ info: UnsafeMutablePointer<fuse_file_info>?) -> Bool {
    info.map { $0.pointee.fh & syncedBit != 0 } ?? false
  }

  /// The file of a request; nil where the kernel named none.
  static func file(_ info: UnsafeMutablePointer<fuse_file_info>?) -> ViewFile? {
    guard let info, let pointer = UnsafeRawPointer(bitPattern: UInt(info.pointee.fh & ~bits)) else { return nil }
    return Unmanaged<ViewFile>.fromOpaque(pointer).takeUnretainedValue()
  }
}
