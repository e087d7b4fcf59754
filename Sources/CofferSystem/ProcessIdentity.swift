#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Whom the process acts for.
public enum ProcessIdentity {
  /// The effective user id.
  public static var user: UInt32 { geteuid() }
  /// The effective group id.
  public static var group: UInt32 { getegid() }
}
