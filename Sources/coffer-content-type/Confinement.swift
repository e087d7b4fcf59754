internal import CSeccomp
internal import CofferSystem
internal import Glibc

/// Takes from this process everything it does not need to look at bytes. It cannot be undone.
enum Confinement {
  /// Bytes of address space: the Swift runtime, the database (8 MB) and libmagic's work on 1 MiB fit easily.
  static let memory: rlim_t = 256 << 20
  /// Seconds of processor time.
  static let processorTime: rlim_t = 5

  /// Limits first, then the filter; `false` when any part fails, and then the caller must not go on.
  static func apply() -> Bool {
    do {
      // No core dump holds what was read, and no process of the same user looks inside.
      try ProcessHardening.apply()
    } catch {
      return false
    }
    return applyLimits() && applyFilter()
  }

  private static func applyLimits() -> Bool {
    func limit(_ resource: __rlimit_resource, to value: rlim_t) -> Bool {
      var pair = rlimit(rlim_cur: value, rlim_max: value)
      return setrlimit(__rlimit_resource_t(resource.rawValue), &pair) == 0
    }
    return limit(RLIMIT_AS, to: memory) && limit(RLIMIT_CPU, to: processorTime)
      && limit(RLIMIT_NOFILE, to: 0) && limit(RLIMIT_FSIZE, to: 0)
  }

  /// A seccomp filter that kills the process at any call that is not on the list. libseccomp sets no_new_privs before
  /// it loads the filter, and fails where that fails.
  private static func applyFilter() -> Bool {
    guard let filter = seccomp_init(SCMP_ACT_KILL_PROCESS) else { return false }
    defer { seccomp_release(filter) }

    func allow(_ call: String, _ conditions: scmp_arg_cmp...) -> Bool {
      let number = seccomp_syscall_resolve_name(call)
      guard number != __NR_SCMP_ERROR else { return false }
      return seccomp_rule_add_exact_array(filter, SCMP_ACT_ALLOW, number, UInt32(conditions.count), conditions) == 0
    }
    func argument(_ index: UInt32, is value: UInt64) -> scmp_arg_cmp {
      scmp_arg_cmp(arg: index, op: SCMP_CMP_EQ, datum_a: value, datum_b: 0)
    }
    func argument(_ index: UInt32, lacks bits: UInt64) -> scmp_arg_cmp {
      scmp_arg_cmp(arg: index, op: SCMP_CMP_MASKED_EQ, datum_a: bits, datum_b: 0)
    }
    let executable = UInt64(PROT_EXEC)
    let anonymous = scmp_arg_cmp(
      arg: 3, op: SCMP_CMP_MASKED_EQ, datum_a: UInt64(MAP_ANONYMOUS), datum_b: UInt64(MAP_ANONYMOUS))

    return allow("read", argument(0, is: UInt64(STDIN_FILENO)))
      && allow("write", argument(0, is: UInt64(STDOUT_FILENO)))
      // Memory: never executable, never a file's.
      && allow("mmap", argument(2, lacks: executable), anonymous)
      && allow("mprotect", argument(2, lacks: executable))
      && allow("munmap") && allow("mremap") && allow("brk") && allow("madvise")
      && allow("futex")
      && allow("exit") && allow("exit_group")
      && seccomp_load(filter) == 0
  }
}
