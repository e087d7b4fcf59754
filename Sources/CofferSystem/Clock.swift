#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A moment of civil time: seconds and nanoseconds since 1970-01-01 UTC.
public struct Timestamp: Hashable, Comparable, Sendable {
  public var seconds: Int64
  public var nanoseconds: UInt32

  public init(seconds: Int64, nanoseconds: UInt32 = 0) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  public static func < (left: Timestamp, right: Timestamp) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }
}

/// Where the engine reads the time. Tests inject one that they move.
public protocol TimeSource: Sendable {
  func now() -> Timestamp
  /// A clock that nobody sets; the system's unless implemented.
  func sinceBoot() -> BootMoment
}

extension TimeSource {
  public func sinceBoot() -> BootMoment { .system }
}

/// The system's real-time clock.
public struct SystemTime: TimeSource {
  public init() {}

  public func now() -> Timestamp {
    var value = timespec()
    clock_gettime(CLOCK_REALTIME, &value)
    return Timestamp(seconds: Int64(value.tv_sec), nanoseconds: UInt32(value.tv_nsec))
  }
}
