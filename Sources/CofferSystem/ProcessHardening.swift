internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// What a program that holds keys does before it reads the first one.
public enum ProcessHardening {
  /// No core dumps, no debugger of the same user, no report of a crash, and files that nobody else may read unless said
  /// otherwise.
  public static func apply() throws(SystemError) {
    // Swift's own report of a crash shows memory that the registers point to.
    for number in [SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGBUS, SIGSEGV, SIGQUIT] { signal(number, SIG_DFL) }
    umask(0o077)
    guard coffer_forbid_core_dumps() == 0 else { throw .last("prctl") }
  }

  /// Whose files this process makes.
  public static var userID: UInt32 { geteuid() }

  public static var processID: Int32 { getpid() }
}
