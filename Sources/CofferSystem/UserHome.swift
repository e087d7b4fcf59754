#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The home folder of the user whom this process runs for.
public enum UserHome {
  /// As the system's list of users has it, by number: a name in the environment may be another user's. Nil where it has none, or
  /// nothing that could be one.
  public static var path: String? {
    var size = 1 << 10
    while size <= 1 << 20 {
      let (code, path) = withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { texts in
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        let code = getpwuid_r(geteuid(), &entry, texts.baseAddress!, texts.count, &found)
        return (code, found == nil ? nil : entry.pw_dir.flatMap { String(validatingCString: $0) })
      }
      guard code == ERANGE else { return path.flatMap { $0.hasPrefix("/") ? $0 : nil } }
      size *= 2
    }
    return nil
  }
}
