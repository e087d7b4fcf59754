internal import CFuse3
internal import CofferContainer
internal import CofferSystem
internal import Synchronization

/// The files that programs have open. The kernel keeps a reference of ours to each, and gives it back with `release`; but not where
/// its connection was torn.
final class OpenFiles: Sendable {
  /// By what the kernel keeps, without ``directBit``.
  private let files = Mutex<[UInt: ViewFile]>([:])

  /// In the reference, whose lowest bits are zero.
  private static let directBit: UInt64 = 1

  /// - Parameter isDirect: the kernel uses no pages of its own for what is written and read.
  func keep(_ file: ViewFile, isDirect: Bool, in info: inout fuse_file_info) {
    let reference = UInt(bitPattern: Unmanaged.passUnretained(file).toOpaque())
    files.withLock { $0[reference] = file }
    info.fh = UInt64(reference) | (isDirect ? Self.directBit : 0)
    info.direct_io = isDirect ? 1 : 0
  }

  /// Ends what `keep` began.
  func giveBack(_ info: UnsafeMutablePointer<fuse_file_info>?) -> ViewFile? {
    guard let info else { return nil }
    return files.withLock { $0.removeValue(forKey: UInt(info.pointee.fh & ~Self.directBit)) }
  }

  /// Ends the use of all, though the kernel may name them still.
  func closeAll() {
    for file in files.withLock({ Array($0.values) }) { try? file.close() }
  }

  /// The kernel names none any more, nor gives any back.
  func forgetAll() {
    for file in files.withLock({ files in
      defer { files = [:] }
      return Array(files.values)
    }) { try? file.close() }
  }

  /// What `keep` was told.
  static func isDirect(_ info: UnsafeMutablePointer<fuse_file_info>?) -> Bool {
    info.map { $0.pointee.fh & directBit != 0 } ?? false
  }

  /// The file of a request; nil where the kernel named none.
  static func file(_ info: UnsafeMutablePointer<fuse_file_info>?) -> ViewFile? {
    guard let info, let pointer = UnsafeRawPointer(bitPattern: UInt(info.pointee.fh & ~directBit)) else { return nil }
    return Unmanaged<ViewFile>.fromOpaque(pointer).takeUnretainedValue()
  }
}
