#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A system call that failed.
///
/// `description` never contains a path: paths are private. It names the call, the code and its meaning, which is
/// enough to act on together with what the caller says it was doing.
public struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The `errno` value.
  public let code: CInt
  /// The system call that failed, such as `fsync`.
  public let call: String

  public init(code: CInt, call: String) {
    self.code = code
    self.call = call
  }

  /// The error that the calling thread's last system call left in `errno`.
  public static func last(_ call: String) -> SystemError { SystemError(code: errno, call: call) }

  public var description: String {
    "\(call): \(meaning) (errno \(code))"
      + (isShortage ? "; end other programs, or raise the limit (ulimit), and try again" : "")
  }
  /// In words, without the call: for who knows what was asked of what.
  public var meaning: String { String(cString: strerror(code)) }

  public var isFull: Bool { code == ENOSPC || code == EDQUOT }
  /// The process or the system has no descriptor, memory, process or thread to give at this moment.
  public var isShortage: Bool {
    [EMFILE, ENFILE, ENOMEM, ENOBUFS].contains(code)
      || code == EAGAIN && ["posix_spawn", "pthread_create"].contains(call)
  }
  public var isReadOnlyDisk: Bool { code == EROFS }
  public var isInterrupt: Bool { code == EINTR }
  public var isAbsent: Bool { code == ENOENT || code == ENOTDIR }
  /// There is nothing of the name, and every part of the way there is a directory.
  public var isMissing: Bool { code == ENOENT }
  /// Whoever asks has no right to it.
  public var isDenied: Bool { code == EACCES || code == EPERM }
  /// The name is another's already.
  public var isTaken: Bool { code == EEXIST }
  /// The place itself is at fault, not the disk: trying the same elsewhere may work.
  public var isPlaceRefused: Bool {
    isAbsent || [EACCES, EPERM, EROFS, EEXIST, ELOOP, ENAMETOOLONG].contains(code)
  }
}
