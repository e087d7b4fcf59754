internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// One owned buffer of secret bytes: never copied by Swift's copy-on-write, kept out of swap where the system allows
/// it, and overwritten when the last reference goes.
public final class SecretBytes: Sendable, CustomStringConvertible, CustomReflectable {
  public let count: Int
  private nonisolated(unsafe) let storage: UnsafeMutableRawPointer

  /// A buffer of `count` bytes that `fill` writes once.
  public init(count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
    self.count = count
    storage = UnsafeMutableRawPointer.allocate(byteCount: max(count, 1), alignment: 16)
    memset(storage, 0, max(count, 1))
    mlock(storage, max(count, 1))
    try fill(UnsafeMutableRawBufferPointer(start: storage, count: count))
  }

  /// A copy of `bytes`. The caller's own copy is the caller's to clear.
  public convenience init(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
  }

  deinit {
    coffer_zero(storage, max(count, 1))
    munlock(storage, max(count, 1))
    storage.deallocate()
  }

  /// Lends the bytes; the pointer must not outlive the call.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try body(UnsafeRawBufferPointer(start: storage, count: count))
  }

  public var description: String { "<secret, \(count) bytes>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Overwrites bytes that held a secret, in a way that the compiler may not remove.
public func overwrite(_ bytes: UnsafeMutableRawBufferPointer) {
  if let base = bytes.baseAddress { coffer_zero(base, bytes.count) }
}
