import CofferSystem
import Foundation
import Glibc
import Synchronization

@testable import CofferSystem

/// A program that runs beside the tests, with the names that Foundation's `Process` has for it.
///
/// Foundation's own reads behind the entries of /proc/self/fd when it starts one, and crashes now and then where a test holds
/// thousands of connections (swift-corelibs-foundation, pull request 5472).
final class ServerProcess: Sendable {
  let executable: String
  let arguments: [String]
  let environment: [String: String]
  private let state = Mutex(State())

  private struct State {
    var processID: Int32 = 0
    var end: Subprocess.End?
  }

  init(_ executable: String, _ arguments: [String], environment: [String: String] = [:]) {
    (self.executable, self.arguments, self.environment) = (executable, arguments, environment)
  }

  deinit {
    terminate(SIGKILL)
    waitUntilExit()
  }

  /// Starts it. What is not given is /dev/null; of a pipe, the end that is the program's is closed here.
  func run(input: Pipe? = nil, output: Pipe? = nil, errors: Pipe? = nil) throws {
    func descriptor(_ handle: FileHandle?) throws -> OwnedDescriptor {
      guard let handle else { return try FileSystem().open("/dev/null", .readWrite) }
      return OwnedDescriptor(adopting: fcntl(handle.fileDescriptor, F_DUPFD_CLOEXEC, 0))
    }
    let descriptors = [
      try descriptor(input?.fileHandleForReading), try descriptor(output?.fileHandleForWriting),
      try descriptor(errors?.fileHandleForWriting),
    ]
    let processID = try ProgramStart.start(
      [executable] + arguments, environment: environment, descriptors: descriptors)
    state.withLock { $0.processID = processID }
    try input?.fileHandleForReading.close()
    try output?.fileHandleForWriting.close()
    try errors?.fileHandleForWriting.close()
  }

  var processIdentifier: Int32 { state.withLock { $0.processID } }

  /// The exit code, or the signal that ended it. Waits for it.
  var terminationStatus: Int32 {
    switch waitUntilExit() {
    case .exited(let code)?: code
    case .killed(let signal)?: signal
    case nil: -1
    }
  }

  var isRunning: Bool {
    state.withLock { state in
      guard state.processID > 0, state.end == nil else { return false }
      return kill(state.processID, 0) == 0 && !Self.isZombie(state.processID)
    }
  }

  /// By proc(5): it has ended and nobody has asked how.
  private static func isZombie(_ processID: Int32) -> Bool {
    let text = (try? KernelFile.text(of: "/proc/\(processID)/stat")) ?? ""
    return text.split(separator: ")").last?.split(separator: " ").first.map { $0 == "Z" || $0 == "X" } ?? true
  }

  /// Does nothing once it has ended.
  func terminate(_ signal: Int32 = SIGTERM) {
    state.withLock { if $0.processID > 0, $0.end == nil { kill($0.processID, signal) } }
  }

  /// Nil where it was never started.
  @discardableResult
  func waitUntilExit() -> Subprocess.End? {
    let (processID, end) = state.withLock { ($0.processID, $0.end) }
    if processID == 0 || end != nil { return end }
    let found = ProgramStart.reap(processID)
    state.withLock { $0.end = found }
    return found
  }
}
