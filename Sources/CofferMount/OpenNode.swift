internal import CFuse3
internal import CofferContainer

/// What the kernel keeps for a file that a program has open: a reference of ours, which it gives back with `release`.
enum OpenNode {
  static func keep(_ file: ViewFile, in info: inout fuse_file_info) {
    info.fh = UInt64(UInt(bitPattern: Unmanaged.passRetained(file).toOpaque()))
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
    guard let info, let pointer = UnsafeRawPointer(bitPattern: UInt(info.pointee.fh)) else { return nil }
    return Unmanaged<ViewFile>.fromOpaque(pointer)
  }
}
