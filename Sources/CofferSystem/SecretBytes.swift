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
  private static let pageSize = sysconf(Int32(_SC_PAGESIZE))
  private let capacity: Int
  private nonisolated(unsafe) let storage: UnsafeMutableRawPointer

  /// A buffer of `count` bytes that `fill` writes once.
  public init(count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
    self.count = count
    // Whole pages, for locking works on pages; and never the allocator's: where the process keeps all its memory out of swap, a page that
    // was unlocked would hold other things later, and might go there.
    capacity = (max(count, 1) + Self.pageSize - 1) / Self.pageSize * Self.pageSize
    guard let storage = coffer_map_memory(capacity) else { fatalError("there is no memory left") }
    self.storage = storage
    mlock(storage, capacity)
    try fill(UnsafeMutableRawBufferPointer(start: storage, count: count))
  }

  /// A copy of `bytes`. The caller's own copy is the caller's to clear.
  public convenience init(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
  }

  deinit {
    coffer_zero(storage, capacity)
    coffer_unmap_memory(storage, capacity)
  }

  /// Compares without telling by its time where a difference is.
  public func isEqual(to other: SecretBytes) -> Bool {
    guard count == other.count else { return false }
    return withUnsafeBytes { left in
      other.withUnsafeBytes { right in
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
      }
    }
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
