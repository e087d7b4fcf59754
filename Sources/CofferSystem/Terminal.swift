#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The terminal that a person sits at, apart from standard input and output.
public enum Terminal {
  /// Longest line that is read.
  private static let limit = 1024

  /// A signal ended a question. The terminal is as it was before, and the process is still to end by the signal.
  public struct Interruption: Error, Equatable, Sendable {
    public let signal: Int32
  }

  /// That of this process; nil where it has none.
  public static var own: OwnedDescriptor? { try? FileSystem().open("/dev/tty", .readWrite) }

  /// How many columns lines for standard output have: as `COLUMNS` says, else as the terminal does, else 80.
  public static var columns: Int {
    if let stated = getenv("COLUMNS").flatMap({ Int(String(cString: $0)) }), stated > 0 { return stated }
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }

  /// Asks for a line that may be seen; nil where there is no terminal.
  public static func readLine(
    prompt: String, at terminal: OwnedDescriptor? = Terminal.own
  ) throws(SystemError) -> [UInt8]? {
    guard let terminal else { return nil }
    try terminal.writeAll(Array(prompt.utf8))
    var line = [UInt8](repeating: 0, count: limit)
    let count = try line.withUnsafeMutableBytes { buffer in
      Result { () throws(SystemError) in try terminal.read(into: buffer) }
    }.get()
    return Array(line[..<count].prefix { $0 != 10 })
  }

  /// Shows a line that holds a secret; `false` where there is no terminal.
  public static func show(_ line: SecretBytes) throws(SystemError) -> Bool {
    guard let terminal = try? FileSystem().open("/dev/tty", .readWrite) else { return false }
    try terminal.writeAll(line)
    try terminal.writeAll(Array("\n".utf8))
    return true
  }

  /// Asks for a secret at this process's terminal without showing it; nil where there is none.
  ///
  /// The echo comes back in every case: signals that end or stop a process wait until it is there. Control-Z stops the
  /// process then, and the question is asked again when it goes on. Throws ``Interruption`` for a signal that is to end
  /// the process.
  public static func readSecret(prompt: String) throws -> SecretBytes? {
    guard let terminal = own else { return nil }
    while true {
      let signals = NotedSignals([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP])
      let answer = Result { () throws(SystemError) in
        try ask(prompt, at: terminal, isCancelled: { signals.noted != nil })
      }
      signals.end()
      guard let number = signals.noted else { return try answer.get() }
      guard number == SIGTSTP else { throw Interruption(signal: number) }
      raise(number)
    }
  }

  /// Asks for a secret at another process's terminal without showing it; nil where it is none.
  ///
  /// The echo comes back in every case. The signals of that terminal's keyboard are the other process's, which tells of
  /// an interrupt by `isCancelled`; it must not stop meanwhile, and so Control-Z and Control-\ mean nothing there.
  ///
  /// - Parameter isCancelled: asked while nothing is typed; when it answers `true` the terminal is left to others, and
  ///   EINTR is thrown.
  public static func readSecret(
    prompt: String, at terminal: OwnedDescriptor, isCancelled: () -> Bool
  ) throws(SystemError) -> SecretBytes? {
    try ask(prompt, at: terminal, withoutKeys: [VSUSP, VQUIT], isCancelled: isCancelled)
  }

  /// - Parameter withoutKeys: characters of the terminal that are to have no meaning while it is asked.
  private static func ask(
    _ prompt: String, at terminal: OwnedDescriptor, withoutKeys: [Int32] = [], isCancelled: () -> Bool
  ) throws(SystemError) -> SecretBytes? {
    var before = termios()
    guard tcgetattr(terminal.number, &before) == 0 else { return nil }
    var quiet = before
    quiet.c_lflag &= ~tcflag_t(ECHO)
    let none = cc_t(truncatingIfNeeded: fpathconf(terminal.number, Int32(_PC_VDISABLE)))
    withUnsafeMutableBytes(of: &quiet.c_cc) { keys in for key in withoutKeys { keys[Int(key)] = none } }
    guard tcsetattr(terminal.number, TCSAFLUSH, &quiet) == 0 else { throw .last("tcsetattr") }
    defer {
      tcsetattr(terminal.number, TCSAFLUSH, &before)
      try? terminal.writeAll(Array("\n".utf8))
    }
    try terminal.writeAll(Array(prompt.utf8))
    while try !terminal.waitUntilReadable(milliseconds: 100) {
      if isCancelled() { throw SystemError(code: EINTR, call: "read") }
    }
    var line = [UInt8](repeating: 0, count: limit)
    defer { line.withUnsafeMutableBytes { overwrite($0) } }
    let count = try line.withUnsafeMutableBytes { buffer in
      Result { () throws(SystemError) in try terminal.read(into: buffer) }
    }.get()
    if isCancelled() { throw SystemError(code: EINTR, call: "read") }
    let end = line[..<count].firstIndex(of: 10) ?? count
    return line[..<end].withUnsafeBytes { SecretBytes(copying: $0) }
  }
}
