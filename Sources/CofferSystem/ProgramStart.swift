#if os(Linux)
  internal import CCoffer
  internal import Glibc

  /// Starts programs: without a shell or a search path, in the root folder, with every signal at its default, and with
  /// nothing of this process but what they are given.
  enum ProgramStart {
    /// Starts the program whose path is the first of `arguments`; its process.
    ///
    /// - Parameters:
    ///   - environment: all of it.
    ///   - descriptors: those from 0 on.
    ///   - isOwnSession: apart from this process's terminal and its signals.
    static func start(
      _ arguments: [String], environment: [String: String] = [:], descriptors: [OwnedDescriptor],
      isOwnSession: Bool = false
    ) throws(SystemError) -> Int32 {
      var actions = posix_spawn_file_actions_t()
      var attributes = posix_spawnattr_t()
      posix_spawn_file_actions_init(&actions)
      posix_spawnattr_init(&attributes)
      defer {
        posix_spawn_file_actions_destroy(&actions)
        posix_spawnattr_destroy(&attributes)
      }
      // Above the numbers that the program gets, so that none is overwritten before it is used.
      var high: [OwnedDescriptor] = []
      for descriptor in descriptors {
        let number = fcntl(descriptor.number, F_DUPFD_CLOEXEC, CInt(descriptors.count))
        guard number >= 0 else { throw .last("fcntl") }
        high.append(OwnedDescriptor(adopting: number))
      }
      var every = sigset_t()
      var none = sigset_t()
      sigfillset(&every)
      sigemptyset(&none)
      let flags = Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK)
      var results = high.enumerated().map { number, descriptor in
        posix_spawn_file_actions_adddup2(&actions, descriptor.number, CInt(number))
      }
      results += [
        coffer_spawn_close_from(&actions, CInt(descriptors.count)),
        coffer_spawn_change_directory(&actions, "/"),
        posix_spawnattr_setsigdefault(&attributes, &every),
        posix_spawnattr_setsigmask(&attributes, &none),
        posix_spawnattr_setflags(&attributes, isOwnSession ? flags | coffer_spawn_new_session() : flags),
      ]
      var processID: pid_t = 0
      if results.allSatisfy({ $0 == 0 }) {
        var vector = arguments.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in vector + variables { free(text) } }
        results.append(
          withExtendedLifetime(high) {
            posix_spawn(&processID, arguments[0], &actions, &attributes, &vector, &variables)
          })
      }
      if let code = results.first(where: { $0 != 0 }) { throw SystemError(code: code, call: "posix_spawn") }
      return processID
    }

    /// Waits until the program has ended, and tells how.
    static func reap(_ processID: Int32) -> Subprocess.End {
      var status: CInt = 0
      while waitpid(processID, &status, 0) < 0, errno == EINTR {}
      // wait(2): the low seven bits are the signal, the next byte is the exit code.
      return status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .killed(status & 0x7f)
    }
  }
#endif
