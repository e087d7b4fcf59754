internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// How long a read or a write waits for the other end of a stream: until somebody says that it shall not any more.
struct Patience: Sendable {
  /// How often it is asked while nothing can be done.
  private static let interval: CInt = 100

  let isOver: @Sendable () -> Bool
  /// Bytes that a write may try at a time.
  let portion: Int

  /// Waits until a read would not block. Throws EINTR when patience is over, also where something could be read: it is
  /// left for whoever comes after.
  func waitToRead(_ number: CInt) throws(SystemError) {
    repeat {
      if isOver() { throw SystemError(code: EINTR, call: "read") }
    } while try !Self.wait(for: POLLIN, on: number)
    if isOver() { throw SystemError(code: EINTR, call: "read") }
  }

  /// Waits until a write would not block. What can be written still is: it may be why the command ends.
  func waitToWrite(_ number: CInt) throws(SystemError) {
    while try !Self.wait(for: POLLOUT, on: number) {
      if isOver() { throw SystemError(code: EINTR, call: "write") }
    }
  }

  private static func wait(for event: Int32, on number: CInt) throws(SystemError) -> Bool {
    var entry = pollfd(fd: number, events: Int16(event), revents: 0)
    let count = poll(&entry, 1, interval)
    if count < 0, errno != EINTR { throw .last("poll") }
    return count > 0
  }
}

extension OwnedDescriptor {
  /// The same stream for a process that must not wait for its other end without limit: while nothing can be read or
  /// written `isOver` is asked, and when it answers `true`, EINTR is thrown. Files and devices need no waiting, and are
  /// returned as they are.
  public func waiting(until isOver: @escaping @Sendable () -> Bool) -> OwnedDescriptor {
    var status = stat()
    guard fstat(number, &status) == 0 else { return self }
    // Where the stream cannot be opened anew, portions are so small that one fits where something may be written.
    let keeping = OwnedDescriptor(keeping: self, Patience(isOver: isOver, portion: Int(PIPE_BUF)))
    switch status.st_mode & S_IFMT {
    case S_IFIFO: break
    case S_IFCHR where isTerminal: break
    case S_IFSOCK: return keeping
    default: return self
    }
    // A flag for not blocking is shared with everybody who has the descriptor. Opened anew, the stream has its own.
    let mode = fcntl(number, F_GETFL) & O_ACCMODE
    let own = coffer_open("/proc/self/fd/\(number)", mode | O_NONBLOCK | O_CLOEXEC, 0)
    guard own >= 0 else { return keeping }
    return OwnedDescriptor(number: own, faults: nil, patience: Patience(isOver: isOver, portion: .max))
  }
}
