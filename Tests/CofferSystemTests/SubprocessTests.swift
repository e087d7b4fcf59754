#if os(Linux)
  import CofferSystem
  import Glibc
  import Testing

  @Suite("A subprocess")
  struct SubprocessTests {
    private func ask(
      _ path: String, _ arguments: [String] = [], sending input: [UInt8] = [], atMost limit: Int = 1 << 16,
      within time: Duration = .seconds(60)
    ) throws -> Subprocess.Answer {
      var process = try Subprocess(path, arguments: arguments)
      return try process.converse(sending: input, receivingAtMost: limit, within: time)
    }

    private func text(_ answer: Subprocess.Answer) -> String { String(decoding: answer.output, as: UTF8.self) }

    @Test(arguments: [0, 1, 4096, 4097, 1 << 20, 3 << 20])
    func `answers with what it was sent, of any size`(size: Int) throws {
      let input = Randomness.bytes(size)
      let answer = try ask("/bin/cat", sending: input, atMost: size)
      #expect(answer.output == input)
      #expect(answer.end == .exited(0))
    }

    @Test func `has an empty environment, the root directory, and three descriptors`() throws {
      #expect(setenv("COFFER_TEST_CANARY", "1", 1) == 0)
      #expect(text(try ask("/usr/bin/env")) == "")
      #expect(text(try ask("/bin/pwd")) == "/\n")
      // One that would be inherited: it has no close-on-exec flag.
      let leaked = OwnedDescriptor(adopting: dup(0))
      // The fourth is the directory that ls itself reads.
      #expect(text(try ask("/bin/ls", ["/proc/self/fd"])) == "0\n1\n2\n3\n")
      #expect(leaked.number > 2)
    }

    @Test func `starts with every signal at its default and none blocked`() throws {
      var set = sigset_t()
      sigemptyset(&set)
      sigaddset(&set, SIGUSR1)
      var before = sigset_t()
      #expect(pthread_sigmask(SIG_BLOCK, &set, &before) == 0)
      defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
      let status = text(try ask("/bin/cat", ["/proc/self/status"]))
      #expect(status.contains("SigBlk:\t0000000000000000"))
      // The two signals that the C library keeps for itself (32 and 33) it also ignores.
      #expect(status.contains("SigIgn:\t0000000180000000") || status.contains("SigIgn:\t0000000000000000"))
    }

    @Test func `reports how it ended`() throws {
      #expect(try ask("/bin/sh", ["-c", "exit 7"]).end == .exited(7))
      #expect(try ask("/bin/sh", ["-c", "kill -9 $$"]).end == .killed(9))
    }

    @Test func `may leave what it is sent unread`() throws {
      let answer = try ask("/bin/sh", ["-c", "echo done"], sending: Randomness.bytes(4 << 20))
      #expect(text(answer) == "done\n")
      #expect(answer.end == .exited(0))
    }

    @Test func `is refused when it answers too much`() {
      #expect(throws: SystemError(code: EMSGSIZE, call: "recv")) {
        try ask("/bin/cat", ["/dev/zero"], atMost: 100_000)
      }
      #expect(throws: SystemError(code: EMSGSIZE, call: "recv")) {
        try ask("/bin/cat", sending: [1, 2, 3], atMost: 2)
      }
    }

    @Test(arguments: [
      ["-c", "exec sleep 1000"],
      // Closes its output, and so gives the end of file, but does not end.
      ["-c", "exec sleep 1000 <&- >&-"],
    ])
    func `is killed and reaped when it takes too long`(arguments: [String]) throws {
      var processID: Int32 = 0
      #expect(throws: SystemError(code: ETIMEDOUT, call: "poll")) {
        var process = try Subprocess("/bin/sh", arguments: arguments)
        processID = process.processID
        _ = try process.converse(sending: [], receivingAtMost: 1, within: .milliseconds(50))
      }
      #expect(processID > 0)
      #expect(kill(processID, 0) == -1)
    }

    @Test func `that does not exist is an error`() {
      #expect(throws: SystemError(code: ENOENT, call: "posix_spawn")) { try ask("/nonexistent") }
      #expect(throws: SystemError(code: EACCES, call: "posix_spawn")) { try ask("/etc") }
    }
  }
#endif
