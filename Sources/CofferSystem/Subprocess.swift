#if os(Linux)
  internal import CCoffer
  internal import Glibc

  /// A program started to answer one question: it is sent bytes, and what it answers is collected, within bounds.
  ///
  /// It starts with an empty environment, in the root directory, with every signal at its default, and with three
  /// descriptors only: its standard input and output are one socket to this process, and its standard error is
  /// discarded. When this value goes, the program is killed if it still runs, and it is always reaped.
  public struct Subprocess: ~Copyable {
    /// How a program ended.
    public enum End: Hashable, Sendable {
      /// It exited with this code.
      case exited(Int32)
      /// This signal killed it.
      case killed(Int32)
    }

    /// What a program answered.
    public struct Answer: Hashable, Sendable {
      public let output: [UInt8]
      public let end: End
    }

    public let processID: Int32
    private let channel: OwnedDescriptor
    private var end: End?

    /// Starts the program at `path`. No shell and no search path is involved.
    public init(_ path: String, arguments: [String] = []) throws(SystemError) {
      let (processID, channel) = try Self.start(path, arguments)
      self.processID = processID
      self.channel = channel
      end = nil
    }

    deinit {
      guard end == nil else { return }
      kill(processID, SIGKILL)
      _ = ProgramStart.reap(processID)
    }

    /// Sends `input`, closes the program's standard input, and collects its output until it has ended.
    ///
    /// - Parameters:
    ///   - limit: bytes of output at most; EMSGSIZE is thrown for more.
    ///   - time: how long all of it may take; ETIMEDOUT is thrown after that.
    /// - Throws: `SystemError`. The program is then killed when this value goes.
    public mutating func converse(
      sending input: [UInt8], receivingAtMost limit: Int, within time: Duration
    ) throws(SystemError) -> Answer {
      let deadline = ContinuousClock.now + time
      var output: [UInt8] = []
      var rest = input[...]
      if rest.isEmpty { closeInput() }
      while true {
        let wanted = rest.isEmpty ? POLLIN : POLLIN | POLLOUT
        let ready = try Self.wait(for: Int16(wanted), on: channel.number, until: deadline)
        if ready & Int16(POLLOUT) != 0, !rest.isEmpty {
          rest = try send(rest)
          if rest.isEmpty { closeInput() }
        }
        if ready & Int16(POLLIN | POLLHUP | POLLERR) != 0 {
          guard let more = try receive() else { break }
          output += more
          if output.count > limit { throw SystemError(code: EMSGSIZE, call: "recv") }
        }
      }
      return Answer(output: output, end: try waitForEnd(until: deadline))
    }

    private func closeInput() { shutdown(channel.number, CInt(SHUT_WR)) }

    /// Sends what fits now and returns the rest. A program that reads no more is no error: its answer counts.
    private func send(_ bytes: ArraySlice<UInt8>) throws(SystemError) -> ArraySlice<UInt8> {
      let count = bytes.withUnsafeBytes {
        Glibc.send(channel.number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
      }
      if count >= 0 { return bytes.dropFirst(count) }
      switch errno {
      case EAGAIN, EINTR: return bytes
      case EPIPE, ECONNRESET: return []
      default: throw .last("send")
      }
    }

    /// What has arrived; nil at the end.
    private func receive() throws(SystemError) -> [UInt8]? {
      var buffer = [UInt8](repeating: 0, count: 4096)
      let count = recv(channel.number, &buffer, buffer.count, 0)
      if count > 0 { return Array(buffer[..<count]) }
      if count == 0 || errno == ECONNRESET { return nil }
      guard errno == EAGAIN || errno == EINTR else { throw .last("recv") }
      return []
    }

    private mutating func waitForEnd(until deadline: ContinuousClock.Instant) throws(SystemError) -> End {
      let handle = OwnedDescriptor(adopting: try retrying("pidfd_open") { coffer_pidfd_open(processID) })
      _ = try Self.wait(for: Int16(POLLIN), on: handle.number, until: deadline)
      let end = ProgramStart.reap(processID)
      self.end = end
      return end
    }

    /// Waits until one of `events`, or an error, is there.
    private static func wait(
      for events: Int16, on number: CInt, until deadline: ContinuousClock.Instant
    ) throws(SystemError) -> Int16 {
      while true {
        let left = deadline - .now
        guard left > .zero else { throw SystemError(code: ETIMEDOUT, call: "poll") }
        var entry = pollfd(fd: number, events: events, revents: 0)
        // Rounded up, so that the last part of a millisecond is not spent turning.
        let milliseconds = CInt(clamping: Int64(left / .milliseconds(1)) + 1)
        let count = poll(&entry, 1, milliseconds)
        if count > 0 { return entry.revents }
        if count < 0, errno != EINTR { throw .last("poll") }
      }
    }

    private static func start(
      _ path: String, _ arguments: [String]
    ) throws(SystemError) -> (Int32, OwnedDescriptor) {
      var pair: [CInt] = [-1, -1]
      let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
      guard socketpair(AF_UNIX, type, 0, &pair) == 0 else { throw .last("socketpair") }
      let ours = OwnedDescriptor(adopting: pair[0])
      let theirs = OwnedDescriptor(adopting: pair[1])
      // The program's end blocks, as programs expect. Each end has this flag for itself.
      guard fcntl(theirs.number, F_SETFL, 0) == 0 else { throw .last("fcntl") }
      let nothing = try FileSystem().open("/dev/null", .writeOnly)
      return (try ProgramStart.start([path] + arguments, descriptors: [theirs, theirs, nothing]), ours)
    }
  }
#endif
