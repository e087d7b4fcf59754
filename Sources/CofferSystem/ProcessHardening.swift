internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// What a program that holds keys does before it reads the first one.
public enum ProcessHardening {
  /// No core dumps, no debugger of the same user, and files that nobody else may read unless said otherwise.
  public static func apply() throws(SystemError) {
    umask(0o077)
    guard coffer_forbid_core_dumps() == 0 else { throw .last("prctl") }
  }

  /// Whose files this process makes.
  public static var userID: UInt32 { geteuid() }

  public static var processID: Int32 { getpid() }
}
