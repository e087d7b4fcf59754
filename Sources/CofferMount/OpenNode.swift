internal import CFuse3
internal import CofferContainer

/// What the kernel keeps for a file that a program has open: a reference of ours, which it gives back with `release`.
enum OpenNode {
  /// In the reference, whose lowest bits are zero.
  private static let directBit: UInt64 = 1

  /// - Parameter isDirect: the kernel uses no pages of its own for what is written and read.
  static func keep(_ file: ViewFile, isDirect: Bool, in info: inout fuse_file_info) {
    info.fh = UInt64(UInt(bitPattern: Unmanaged.passRetained(file).toOpaque())) | (isDirect ? directBit : 0)
    info.direct_io = isDirect ? 1 : 0
  }

  /// What `keep` was told.
  static func isDirect(_ info: UnsafeMutablePointer<fuse_file_info>?) -> Bool {
    info.map { $0.pointee.fh & directBit != 0 } ?? false
  }

  /// The file of a request; nil where the kernel named none.
  static func file(_ info: UnsafeMutablePointer<fuse_file_info>?) -> ViewFile? {
    reference(info)?.takeUnretainedValue()
  }

  /// Ends what `keep` began.
  static func giveBack(_ info: UnsafeMutablePointer<fuse_file_info>?) -> ViewFile? {
    reference(info)?.takeRetainedValue()
  }

  private static func reference(_ info: UnsafeMutablePointer<fuse_file_info>?) -> Unmanaged<ViewFile>? {
    guard let info, let pointer = UnsafeRawPointer(bitPattern: UInt(info.pointee.fh & ~directBit)) else { return nil }
    return Unmanaged<ViewFile>.fromOpaque(pointer)
  }
}
