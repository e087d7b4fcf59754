internal import CofferSystem
internal import Foundation
internal import Synchronization

/// A buffer of random bytes that begins on a page. Threads that share one only read it.
final class Buffer: @unchecked Sendable {
  let bytes: UnsafeMutableRawBufferPointer

  init(_ count: Int) {
    bytes = .allocate(byteCount: count, alignment: 4096)
    bytes.copyBytes(from: Randomness.bytes(count))
  }

  deinit { bytes.deallocate() }

  var readable: UnsafeRawBufferPointer { UnsafeRawBufferPointer(bytes) }
}

/// Threads that run the same body side by side: as many as are asked for, whatever the machine has.
final class Threads: Sendable {
  private let failure = Mutex<(any Error)?>(nil)

  /// Throws the first failure once all have ended.
  static func run(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
    let threads = Threads()
    let group = DispatchGroup()
    for index in 0..<count {
      group.enter()
      Thread {
        do { try body(index) } catch { threads.failure.withLock { $0 = $0 ?? error } }
        group.leave()
      }.start()
    }
    group.wait()
    if let error = threads.failure.withLock({ $0 }) { throw error }
  }
}
