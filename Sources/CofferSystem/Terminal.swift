#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The terminal that a person sits at, apart from standard input and output.
public enum Terminal {
  /// Longest line that is read.
  private static let limit = 1024

  /// That of this process; nil where it has none.
  public static var own: OwnedDescriptor? { try? FileSystem().open("/dev/tty", .readWrite) }

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

  /// Asks for a secret without showing it; nil where there is no terminal.
  ///
  /// The echo comes back in every case, an interrupt included.
  ///
  /// - Parameter isCancelled: asked while nothing is typed; when it answers `true` the terminal is left to others, and
  ///   EINTR is thrown.
  public static func readSecret(
    prompt: String, at terminal: OwnedDescriptor? = Terminal.own, isCancelled: () -> Bool = { false }
  ) throws(SystemError) -> SecretBytes? {
    guard let terminal else { return nil }
    var before = termios()
    guard tcgetattr(terminal.number, &before) == 0 else { return nil }
    var quiet = before
    quiet.c_lflag &= ~tcflag_t(ECHO)
    // Without signals from the keyboard, an interrupt cannot leave the terminal mute.
    quiet.c_lflag &= ~tcflag_t(ISIG)
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
    // Control-C, as a character because signals are off.
    guard !line[..<count].contains(3) else { throw SystemError(code: EINTR, call: "read") }
    let end = line[..<count].firstIndex(of: 10) ?? count
    return line[..<end].withUnsafeBytes { SecretBytes(copying: $0) }
  }
}
