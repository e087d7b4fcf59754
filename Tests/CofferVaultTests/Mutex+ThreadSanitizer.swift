#if COFFER_THREAD_SANITIZER
  import Foundation

  /// As in CofferVault: what ThreadSanitizer can see into.
  final class Mutex<Value>: @unchecked Sendable {
    private let lock = NSLock()
    /// With a byte of its own, so that a value without size does not share its address with something else.
    private var value: (guarded: Value, UInt8)

    init(_ value: consuming sending Value) { self.value = (value, 0) }

    func withLock<Result, Failure: Error>(
      _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
      lock.lock()
      defer { lock.unlock() }
      return try body(&value.guarded)
    }

    func withLockIfAvailable<Result, Failure: Error>(
      _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result? {
      guard lock.try() else { return nil }
      defer { lock.unlock() }
      return try body(&value.guarded)
    }
  }
#endif
