#if os(Linux)
  import Glibc
  import Testing

  @testable import coffer_content_type

  /// Each test is a process of its own that confines itself as the helper does, and then tries one thing.
  @Suite("The helper's confinement")
  struct ConfinementTests {
    enum Attempt: String, Codable, CaseIterable, Sendable {
      case openFile, makeSocket, makeProcess, becomeOtherProgram, readOtherDescriptor, writeOtherDescriptor
      case mapExecutable, makeExecutable, mapFile, askForParent

      /// Makes one system call that the filter must not let through.
      func make() {
        var byte: UInt8 = 0
        switch self {
        case .openFile: _ = opendir("/")
        case .makeSocket: _ = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        case .makeProcess: _ = daemon(1, 1)
        case .becomeOtherProgram: _ = execve("/bin/true", [nil], [nil])
        case .readOtherDescriptor: _ = read(3, &byte, 1)
        case .writeOtherDescriptor: _ = write(STDERR_FILENO, &byte, 1)
        case .mapExecutable: _ = mmap(nil, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        case .makeExecutable:
          let page = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
          _ = mprotect(page, 4096, PROT_READ | PROT_EXEC)
        case .mapFile: _ = mmap(nil, 4096, PROT_READ, MAP_PRIVATE, 0, 0)
        case .askForParent: _ = getppid()
        }
      }
    }

    @Test(arguments: Attempt.allCases) func `kills at the first call that is not on the list`(attempt: Attempt) async {
      await #expect(processExitsWith: .signal(SIGSYS)) { [attempt] in
        guard Confinement.apply() else { _exit(1) }
        attempt.make()
        _exit(0)
      }
    }

    @Test func `lets the work be done`() async {
      await #expect(processExitsWith: .exitCode(42)) {
        guard Confinement.apply() else { _exit(1) }
        var byte: UInt8 = 0
        let count = read(STDIN_FILENO, &byte, 1)
        // The test's process is larger than the helper may become, so it gets what it has already.
        let memory = malloc(1000)!
        memset(memory, 1, 1000)
        free(memory)
        _exit(count >= 0 ? 42 : 2)
      }
    }
  }
#endif
