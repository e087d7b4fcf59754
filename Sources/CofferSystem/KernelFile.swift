/// A file that the kernel writes while it is read, such as those below `/proc` and `/sys`.
///
/// Through these functions only: the size of such a file is told as 0, and Foundation takes one of that size to have ended where a read
/// gives less than was asked for. The kernel gives a long one in portions of less than a page (proc(5)), so that all but its beginning
/// would be missing.
public enum KernelFile {
  /// Throws EFBIG where there are more than `limit` bytes.
  public static func bytes(of path: String, limit: Int = 64 << 20) throws(SystemError) -> [UInt8] {
    try FileSystem().open(path, .readOnly).contents(limit: limit)
  }

  public static func text(of path: String, limit: Int = 64 << 20) throws(SystemError) -> String {
    String(decoding: try bytes(of: path, limit: limit), as: UTF8.self)
  }
}
