import CofferSystem
import Foundation
import Glibc
import Testing

/// A second process, which does in Python what it is told, in a plot.
final class Peer {
  static let isPossible = FileManager.default.isExecutableFile(atPath: python)
  static let missing: Comment = "there is no /usr/bin/python3, which the second process is written in"

  private static let python = "/usr/bin/python3"

  /// Answers with the value of each line, or the name of its error.
  private static let script = """
    import errno, fcntl, mmap, os, signal, socket, struct, sys
    class Interrupted(BaseException): pass
    def interrupt(*_): raise Interrupted
    signal.signal(signal.SIGALRM, interrupt)
    def lock(file, command, kind, start=0, count=0, whence=0, process=0):
      made = struct.pack("hhxxxxqqixxxx", kind, whence, start, count, process)
      return struct.unpack("hhxxxxqqixxxx", fcntl.fcntl(file, command, made))
    print("ready", flush=True)
    for line in sys.stdin:
      try:
        try: code = compile(line.strip(), "line", "eval")
        except SyntaxError: code = compile(line.strip(), "line", "exec")
        answer = eval(code, globals())
      except OSError as error: answer = errno.errorcode[error.errno]
      except BaseException as error: answer = type(error).__name__
      print(answer, flush=True)
    """

  private let program: RunningProgram
  private let folder: URL

  init(in plot: Plot) throws {
    folder = URL(fileURLWithPath: NSTemporaryDirectory() + "coffer-test-" + UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    program = try RunningProgram(
      Self.python, ["-c", Self.script], in: plot.path, environment: ["PATH": "/usr/bin:/bin"],
      errors: folder.path + "/errors")
    try #require(program.line() == "ready\n")
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  var processID: pid_t { program.processID }

  /// Runs a line and waits for what it comes to: a value as Python prints it, or an error's name.
  func ask(_ line: String) -> String {
    begin(line)
    return answer()
  }

  /// Runs a line, which may wait for something.
  func begin(_ line: String) { program.send(Array((line + "\n").utf8)) }

  /// What the line that was begun came to.
  func answer() -> String { String(program.line().dropLast()) }

  func signal(_ number: CInt) { program.signal(number) }

  /// Ends it without a word.
  func killAndWait() {
    program.signal(SIGKILL)
    _ = program.wait()
  }

  /// Waits until it sleeps in a system call of this number.
  func waitUntilAsleep(in call: Int) throws {
    let place = "/proc/\(processID)"
    while true {
      let current = try KernelFile.text(of: place + "/syscall")
      let state = try KernelFile.text(of: place + "/stat")
      if current.hasPrefix("\(call) "), state.contains(") S ") { return }
      sched_yield()
    }
  }

  #if arch(arm64)
    static let fcntlCall = 25
    static let flockCall = 32
  #else
    static let fcntlCall = 72
    static let flockCall = 73
  #endif
}
