#if os(Linux)
  internal import CCoffer
  internal import Glibc

  /// A program that is started to outlive this one: in a session of its own, in the root folder, with nothing of this
  /// process but what it is given.
  public final class BackgroundProgram: Sendable {
    public let processID: Int32
    /// What is written here the program reads from its standard input.
    public let input: OwnedDescriptor
    public let output: OwnedDescriptor
    public let errors: OwnedDescriptor

    /// Starts the program at `path`, with exactly this environment.
    public init(_ path: String, _ arguments: [String], environment: [String: String]) throws(SystemError) {
      let (inputEnd, input) = try OwnedDescriptor.pipe()
      let (output, outputEnd) = try OwnedDescriptor.pipe()
      let (errors, errorsEnd) = try OwnedDescriptor.pipe()
      // The program's ends block, as programs expect. Each end has this flag for itself.
      for end in [outputEnd, errorsEnd] {
        guard fcntl(end.number, F_SETFL, 0) == 0 else { throw .last("fcntl") }
      }
      (self.input, self.output, self.errors) = (input, output, errors)
      processID = try Self.spawn([path] + arguments, environment, [inputEnd, outputEnd, errorsEnd])
    }

    /// Waits until the program has ended; its exit code, or 128 and the number of the signal that ended it.
    public func waitForEnd() -> Int32 {
      var status: CInt = 0
      while waitpid(processID, &status, 0) < 0, errno == EINTR {}
      return status & 0x7f == 0 ? status >> 8 & 0xff : 128 + (status & 0x7f)
    }

    private static func spawn(
      _ arguments: [String], _ environment: [String: String], _ descriptors: [OwnedDescriptor]
    ) throws(SystemError) -> Int32 {
      var actions = posix_spawn_file_actions_t()
      var attributes = posix_spawnattr_t()
      posix_spawn_file_actions_init(&actions)
      posix_spawnattr_init(&attributes)
      defer {
        posix_spawn_file_actions_destroy(&actions)
        posix_spawnattr_destroy(&attributes)
      }
      var every = sigset_t()
      var none = sigset_t()
      sigfillset(&every)
      sigemptyset(&none)
      var results: [CInt] = []
      // Above the numbers that the program gets, so that none is overwritten before it is used.
      var high: [OwnedDescriptor] = []
      for descriptor in descriptors {
        let number = fcntl(descriptor.number, F_DUPFD_CLOEXEC, 3)
        guard number >= 0 else { throw .last("fcntl") }
        high.append(OwnedDescriptor(adopting: number))
      }
      for (number, descriptor) in high.enumerated() {
        results.append(posix_spawn_file_actions_adddup2(&actions, descriptor.number, CInt(number)))
      }
      results += [
        coffer_spawn_close_from(&actions, STDERR_FILENO + 1),
        coffer_spawn_change_directory(&actions, "/"),
        posix_spawnattr_setsigdefault(&attributes, &every),
        posix_spawnattr_setsigmask(&attributes, &none),
        posix_spawnattr_setflags(
          &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK) | coffer_spawn_new_session()),
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
  }
#endif
