internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// What a program that holds keys does before it reads the first one.
public enum ProcessHardening {
  /// Lets each of the three standard descriptors lead somewhere, before anything else is opened: the next file would get
  /// the number of one that is closed, and with it what is printed, and readers of its clients.
  ///
  /// They lead to where using them fails as if they were closed: what cannot be written must not look as if it were.
  public static func occupyStandardDescriptors() throws(SystemError) {
    for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) < 0 && errno == EBADF {
      // The lowest free number is this one.
      let opened = coffer_open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY, 0)
      guard opened == number else { throw .last("open") }
    }
  }

  /// No core dumps, no debugger of the same user, no report of a crash, no end by a limit of a file's size, and files that nobody else may
  /// read unless said otherwise.
  public static func apply() throws(SystemError) {
    // Swift's own report of a crash shows memory that the registers point to.
    for number in [SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGBUS, SIGSEGV, SIGQUIT] where coffer_ignores(number) == 0 {
      signal(number, SIG_DFL)
    }
    // What would make a file larger than the process may (RLIMIT_FSIZE) fails, and does not end it.
    signal(SIGXFSZ, SIG_IGN)
    umask(0o077)
    guard coffer_forbid_core_dumps() == 0 else { throw .last("prctl") }
  }

  /// Whether core dumps and debuggers of the same user are off, as the system has it.
  public static var isWithoutCoreDumps: Bool { coffer_is_without_core_dumps() != 0 }

  /// Keeps all memory of the process out of swap, also what it takes later; whether the system allows it.
  ///
  /// A limit that is lower than what a process may come to need would make it fail in the midst of its work, so only a
  /// process without a limit does it. Without it, ``SecretBytes`` are locked one by one.
  public static func keepOutOfSwap() -> Bool {
    var limit = rlimit()
    guard coffer_locked_memory_limit(&limit) == 0 else { return false }
    // With a limit of nothing only a privileged process, which no limit binds, may lock at all.
    let isLimited = limit.rlim_cur != rlim_t.max
    if isLimited {
      var none = rlimit(rlim_cur: 0, rlim_max: limit.rlim_max)
      guard coffer_set_locked_memory_limit(&none) == 0 else { return false }
    }
    defer { if isLimited { _ = coffer_set_locked_memory_limit(&limit) } }
    return coffer_lock_memory() == 0
  }

  /// What the environment of a program must have so that glibc leaves fewer copies of secrets behind.
  ///
  /// Its linker otherwise binds a call when it is first made, and stores all registers on the stack meanwhile: with them up to
  /// half a KiB of what was copied last, be it keys or content, which nobody overwrites there. And its allocator keeps freed
  /// blocks of up to a KiB for the thread, without writing over them: among them what BoringSSL makes of each key of AES-GCM,
  /// in 600 bytes, which begin with the key; and swift-crypto's array of 96 bytes for each key of its HMAC, with the key in a form that anybody
  /// turns back (RFC 2104), or 128 with what was hashed of it. To keep only those of up to 56 bytes, which have no room for such,
  /// costs nothing that can be measured; to keep none costs a seventh of the time in which a mount makes files. Who has secrets
  /// in less than that overwrites them.
  public static let leavingNoCopies = ["LD_BIND_NOW": "1", "GLIBC_TUNABLES": "glibc.malloc.tcache_max=56"]

  /// Whether glibc was told so when this program was started.
  private static var leavesNoCopies: Bool {
    #if canImport(Glibc)
      coffer_has_raised_privileges() == 0
        && leavingNoCopies.allSatisfy { name, value in getenv(name).map { String(cString: $0) } == value }
    #else
      true
    #endif
  }

  /// Starts this program again, as it was started, unless it leaves no copies. Comes before the first secret, and before
  /// anything was read or opened that the program needs.
  public static func startLeavingNoCopies() {
    #if canImport(Glibc)
      // A program with privileges of its own would not be heard. Where it cannot be started again, it goes on as it is.
      guard coffer_has_raised_privileges() == 0, !leavesNoCopies else { return }
      for (name, value) in leavingNoCopies { setenv(name, value, 1) }
      // By its own path, so that it keeps its name in lists of processes.
      if let path = realpath("/proc/self/exe", nil) {
        execv(path, CommandLine.unsafeArgv)
        free(path)
      }
      execv("/proc/self/exe", CommandLine.unsafeArgv)
    #endif
  }

  /// Lets the process open as many descriptors as the system allows it: for one that holds those of many others.
  public static func raiseDescriptorLimit() { _ = coffer_raise_descriptor_limit() }

  /// Whose files this process makes.
  public static var userID: UInt32 { geteuid() }

  public static var processID: Int32 { getpid() }
}
