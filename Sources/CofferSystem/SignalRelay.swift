internal import CCoffer
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Turns signals into bytes of a pipe or a socket, where whoever waits for other things as well finds them.
public enum SignalRelay {
  private static let target = Atomic<CInt>(-1)
  private static let kept = Mutex<OwnedDescriptor?>(nil)

  /// From here on each of these signals writes one byte, its number, to `descriptor`, and does nothing else; but one that
  /// is ignored stays so. What does not fit is dropped. Writing to a pipe that nobody reads no longer ends the process.
  public static func start(_ numbers: [Int32], to descriptor: OwnedDescriptor) {
    kept.withLock { $0 = descriptor }
    target.store(descriptor.number, ordering: .sequentiallyConsistent)
    ignoreBrokenPipes()
    for number in numbers {
      handle(number) { number in
        let before = errno
        var byte = UInt8(truncatingIfNeeded: number)
        _ = write(SignalRelay.target.load(ordering: .sequentiallyConsistent), &byte, 1)
        errno = before
      }
    }
  }

  /// Lets a signal call `handler`, unless whoever started this process has it ignore that signal, as `nohup` does, and a
  /// shell for what runs in its background.
  public static func handle(_ number: Int32, _ handler: @escaping @convention(c) (Int32) -> Void) {
    if coffer_ignores(number) == 0 { signal(number, handler) }
  }

  /// Lets a signal do again what it does where nobody catches it, unless it is ignored.
  public static func letGo(_ number: Int32) { if coffer_ignores(number) == 0 { signal(number, SIG_DFL) } }

  /// Writing to a pipe that nobody reads fails from here on, and does not end the process.
  public static func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }

  /// Ends the process as this signal does where nobody catches it, so that whoever waits for it sees the same.
  public static func endProcess(by number: Int32) {
    signal(number, SIG_DFL)
    raise(number)
  }

  /// Those by which a person, a system or a terminal that goes away ends a program.
  public static let interrupts = [SIGINT, SIGTERM, SIGHUP]
  public static let interrupt = SIGINT
  public static let termination = SIGTERM
  public static let hangUp = SIGHUP
  public static let user1 = SIGUSR1
  public static let brokenPipe = SIGPIPE
}

extension OwnedDescriptor {
  /// The two ends of a pipe that no child inherits. The writing end does not block.
  public static func pipe() throws(SystemError) -> (reading: OwnedDescriptor, writing: OwnedDescriptor) {
    var pair: [CInt] = [-1, -1]
    #if canImport(Glibc)
      let result = Glibc.pipe(&pair)
    #else
      let result = Darwin.pipe(&pair)
    #endif
    guard result == 0 else { throw .last("pipe") }
    let ends = pair.map { OwnedDescriptor(adopting: $0) }
    for end in ends { guard fcntl(end.number, F_SETFD, FD_CLOEXEC) == 0 else { throw .last("fcntl") } }
    guard fcntl(ends[1].number, F_SETFL, O_NONBLOCK) == 0 else { throw .last("fcntl") }
    return (ends[0], ends[1])
  }

  /// Lets a standard descriptor lead to where this one does.
  public func replace(_ standard: OwnedDescriptor) throws(SystemError) {
    guard dup2(number, standard.number) >= 0 else { throw .last("dup2") }
  }
}

/// What belongs to one thread and not to its process.
public enum CurrentThread {
  /// Gives the calling thread, and no other, a current folder of its own: relative paths lead from there.
  public static func enter(_ folder: OwnedDescriptor) throws(SystemError) {
    guard coffer_enter_directory(folder.number) == 0 else { throw .last("fchdir") }
  }

  /// Leaves the folder that was entered, and for those threads, too, that this one has started since: on Linux they share it, and would keep
  /// it in use for as long as they run.
  public static func leave() { coffer_leave_directory() }
}
