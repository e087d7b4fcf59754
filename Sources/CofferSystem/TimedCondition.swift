#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A lock with threads that wait for something to be true of what it guards, for no longer than some time.
///
/// The time goes by a clock that nobody sets. Foundation's `NSCondition` waits until a date: where the date is set back meanwhile, by as
/// much longer.
public final class TimedCondition: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  public init() {
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    condition.initialize(to: pthread_cond_t())
    #if canImport(Darwin)
      pthread_cond_init(condition, nil)
    #else
      var attributes = pthread_condattr_t()
      pthread_condattr_init(&attributes)
      pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
      pthread_cond_init(condition, &attributes)
      pthread_condattr_destroy(&attributes)
    #endif
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  public func withLock<Result>(_ body: () throws -> Result) rethrows -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body()
  }

  /// Gives the lock back, which the caller has, until somebody calls ``broadcast()``, or for no reason; then the caller has it again.
  public func wait() { pthread_cond_wait(condition, mutex) }

  /// The same, but no longer than until `end`; `false` where that has come.
  public func wait(until end: SuspendingClock.Instant) -> Bool {
    let left = end - .now
    guard left > .zero else { return false }
    // A day at most: who waits looks again.
    let (seconds, attoseconds) = min(left, .seconds(86_400)).components
    var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    #if canImport(Darwin)
      let code = pthread_cond_timedwait_relative_np(condition, mutex, &time)
    #else
      var now = timespec()
      clock_gettime(CLOCK_MONOTONIC, &now)
      time.tv_sec += now.tv_sec
      time.tv_nsec += now.tv_nsec
      if time.tv_nsec >= 1_000_000_000 {
        time.tv_sec += 1
        time.tv_nsec -= 1_000_000_000
      }
      let code = pthread_cond_timedwait(condition, mutex, &time)
    #endif
    return code != ETIMEDOUT || .now < end
  }

  /// Wakes whoever waits.
  public func broadcast() { pthread_cond_broadcast(condition) }
}
