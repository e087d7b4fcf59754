import Foundation
import Glibc

/// One of the built programs, started as a person would: a real process, with only the environment it is given.
///
/// It inherits three descriptors and no more, so that tests that run beside each other do not hold each other's pipes.
final class RunningProgram {
  /// What a program left when it ended.
  struct Outcome {
    /// The exit code; 128 and the signal for a program that a signal killed, as shells have it.
    let code: Int32
    let hasDumpedCore: Bool
    let bytes: [UInt8]
    let errors: String

    var output: String { String(decoding: bytes, as: UTF8.self) }
    /// The one value that was printed.
    var value: String { output.trimmingCharacters(in: .newlines) }
  }

  /// Where SwiftPM puts products: beside the test bundle.
  static let folder = Bundle.main.executableURL!.deletingLastPathComponent()

  /// A program that takes longer than this hangs; it is killed, so that the test fails and ends.
  private static let patience: CInt = 60_000

  let processID: pid_t
  private var input: Descriptor?
  private let output: Descriptor
  private let errors: String
  /// Ends when the program has ended: nobody else has the other end.
  private let life: Descriptor
  private var isReaped = false

  /// - Parameters:
  ///   - name: a product, or an absolute path.
  ///   - folder: where it works.
  ///   - errors: the file that its standard error goes to; it stays.
  init(
    _ name: String, _ arguments: [String], in folder: String, environment: [String: String], errors: String
  ) throws {
    self.errors = errors
    let (inputEnd, input) = try Descriptor.pipe()
    let (output, outputEnd) = try Descriptor.pipe()
    let (life, lifeEnd) = try Descriptor.pipe()
    let errorFile = try Descriptor(open(errors, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600), "open")
    self.input = input
    self.output = output
    self.life = life
    let path = name.hasPrefix("/") ? name : Self.folder.appendingPathComponent(name).path
    processID = try Self.spawn(
      [path] + arguments, in: folder, environment,
      descriptors: [inputEnd, outputEnd, errorFile, lifeEnd])
  }

  deinit {
    if isReaped { return }
    kill(processID, SIGKILL)
    waitpid(processID, nil, 0)
  }

  /// Sends bytes to the program's standard input and waits until it took all that a pipe does not hold.
  ///
  /// - Returns: `false` where the program reads no more.
  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool { input?.write(bytes) ?? false }

  func endInput() { input = nil }

  /// Waits for the next line of standard output; what has come where the output ends first.
  func line() -> String { String(decoding: output.read(until: UInt8(ascii: "\n")), as: UTF8.self) }

  /// Waits for the next byte of standard output.
  func byte() -> UInt8? { output.read(until: nil, limit: 1).first }

  /// Waits until standard output ends with `text`, or ends; returns what has come.
  func read(until text: String) -> String {
    var shown: [UInt8] = []
    while !shown.suffix(text.utf8.count).elementsEqual(text.utf8), let byte = byte() { shown.append(byte) }
    return String(decoding: shown, as: UTF8.self)
  }

  func signal(_ number: Int32) { kill(processID, number) }

  var hasEnded: Bool { life.isReadable(within: 0) }

  /// Waits until the program has ended, and reads nothing of what it writes meanwhile.
  func waitUnread() { _ = life.isReadable(within: Self.patience) }

  /// Waits until the program has ended. Its input ends now, unless `leavingInputOpen`.
  func wait(leavingInputOpen: Bool = false) -> Outcome {
    if !leavingInputOpen { endInput() }
    let bytes = output.read(until: nil, patience: Self.patience)
    if !life.isReadable(within: Self.patience) { kill(processID, SIGKILL) }
    var status: CInt = 0
    while waitpid(processID, &status, 0) < 0, errno == EINTR {}
    isReaped = true
    // wait(2): the low seven bits are the signal, then a bit for the core, then the exit code.
    let signal = status & 0x7f
    return Outcome(
      code: signal == 0 ? status >> 8 & 0xff : 128 + signal, hasDumpedCore: status & 0x80 != 0, bytes: bytes,
      errors: (try? String(contentsOfFile: errors, encoding: .utf8)) ?? "")
  }

  /// Starts a program whose descriptors 0, 1, 2 and 3 are those given.
  private static func spawn(
    _ arguments: [String], in folder: String, _ environment: [String: String], descriptors: [Descriptor]
  ) throws -> pid_t {
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
    posix_spawnattr_setsigdefault(&attributes, &every)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
    _ = Hidden.changeDirectory(&actions, folder)
    for (number, descriptor) in descriptors.enumerated() {
      posix_spawn_file_actions_adddup2(&actions, descriptor.number, CInt(number))
    }
    _ = Hidden.closeFrom(&actions, CInt(descriptors.count))
    var vector = arguments.map { strdup($0) } + [nil]
    var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for text in vector + variables { free(text) } }
    var processID: pid_t = 0
    let code = withExtendedLifetime(descriptors) {
      posix_spawn(&processID, arguments[0], &actions, &attributes, &vector, &variables)
    }
    guard code == 0 else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO) }
    return processID
  }
}

/// A descriptor that no child process inherits, closed with its last reference.
final class Descriptor {
  let number: CInt

  init(_ number: CInt, _ call: String) throws {
    guard number >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    self.number = number
  }

  deinit { close(number) }

  /// Both ends are above the numbers that a child gives to its own, so that none is overwritten before it is used.
  static func pipe() throws -> (reading: Descriptor, writing: Descriptor) {
    var pair: [CInt] = [-1, -1]
    guard Hidden.pipe(&pair, O_CLOEXEC) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    let ends = try pair.map { number in
      defer { close(number) }
      return try Descriptor(fcntl(number, F_DUPFD_CLOEXEC, 10), "fcntl")
    }
    return (ends[0], ends[1])
  }

  func write(_ bytes: [UInt8]) -> Bool {
    // A pipe that nobody reads is an answer here and no reason to die.
    _ = Self.brokenPipesAreAnswers
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(number, $0.baseAddress, $0.count) }
      if count < 0, errno != EINTR { return false }
      rest = rest.dropFirst(max(0, count))
    }
    return true
  }

  private static let brokenPipesAreAnswers: Void = { Glibc.signal(SIGPIPE, SIG_IGN) }()

  /// Reads up to and with `end`, else `limit` bytes or to the end of the file.
  func read(until end: UInt8?, limit: Int = .max, patience: CInt = 60_000) -> [UInt8] {
    var result: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: end == nil ? min(limit, 64 << 10) : 1)
    while isReadable(within: patience) {
      let count = Glibc.read(number, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      if count <= 0 { break }
      result += buffer[..<count]
      if result.count >= limit { break }
      if let end, result.last == end { break }
    }
    return result
  }

  func isReadable(within milliseconds: CInt) -> Bool {
    var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    while true {
      let count = poll(&entry, 1, milliseconds)
      if count >= 0 { return count > 0 }
      if errno != EINTR { return false }
    }
  }
}

/// Functions that Glibc has and its Swift module does not show.
private enum Hidden {
  typealias Actions = UnsafeMutablePointer<posix_spawn_file_actions_t>
  static let closeFrom = find("posix_spawn_file_actions_addclosefrom_np", (@convention(c) (Actions, CInt) -> CInt).self)
  static let changeDirectory = find(
    "posix_spawn_file_actions_addchdir_np", (@convention(c) (Actions, UnsafePointer<CChar>) -> CInt).self)
  static let pipe = find("pipe2", (@convention(c) (UnsafeMutablePointer<CInt>, CInt) -> CInt).self)

  private static func find<Function>(_ name: String, _ type: Function.Type) -> Function {
    unsafeBitCast(dlsym(nil, name), to: type)
  }
}
