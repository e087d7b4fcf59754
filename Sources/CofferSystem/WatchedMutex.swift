#if COFFER_THREAD_SANITIZER
  internal import Foundation

  /// Stands in for Synchronization's `Mutex` where ThreadSanitizer looks on: it knows the locks of pthreads, and cannot
  /// see into those of Swift's runtime, so that everything guarded by one would be reported. What is guarded by what
  /// stays the same. Rooms and tests that use `Mutex` call this so in such a build.
  public final class WatchedMutex<Value>: @unchecked Sendable {
    private let lock = NSLock()
    /// With a byte of its own, so that a value without size does not share its address with something else.
    private var value: (guarded: Value, UInt8)

    public init(_ value: consuming sending Value) { self.value = (value, 0) }

    public func withLock<Result, Failure: Error>(
      _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
      lock.lock()
      defer { lock.unlock() }
      return try body(&value.guarded)
    }

    public func withLockIfAvailable<Result, Failure: Error>(
      _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result? {
      guard lock.try() else { return nil }
      defer { lock.unlock() }
      return try body(&value.guarded)
    }
  }
#endif
