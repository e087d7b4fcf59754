internal import CofferSystem
internal import Foundation
internal import Synchronization

/// Runs the same loop on several threads until one fails or all are done.
final class Workers: Sendable {
  /// More threads than this only wait for each other at the disk, and each holds two buffers.
  static let count = min(4, max(1, ProcessInfo.processInfo.activeProcessorCount))

  private let failure = Mutex<(any Error)?>(nil)
  private let stopped = Atomic(false)

  /// True once a worker failed: the others leave their loops.
  var isStopped: Bool { stopped.load(ordering: .relaxed) }

  /// Calls `body` so many times at once; throws the first failure.
  func run(_ body: @Sendable () throws -> Void) throws {
    Helpers.apart(Self.count) { _ in
      do {
        try body()
      } catch {
        failure.withLock { if $0 == nil { $0 = error } }
        stopped.store(true, ordering: .relaxed)
      }
    }
    if let error = failure.withLock({ $0 }) { throw error }
  }
}

/// A buffer of plaintext or ciphertext that is overwritten before it is given back.
final class TransferBuffer {
  let bytes: UnsafeMutableRawBufferPointer

  init(count: Int, startsAtPage: Bool = true) {
    bytes = TransferMemory.allocate(byteCount: count, startsAtPage: startsAtPage)
  }

  deinit {
    overwrite(bytes)
    TransferMemory.free(bytes)
  }
}

extension Workers {
  /// Calls `body` with each number below `count`, on as many threads as are free; throws the first failure.
  ///
  /// Threads take one number after the other, so that a thread which wakes late takes fewer, and nobody waits for it.
  static func each(_ count: Int, _ body: @Sendable (Int) throws -> Void) throws {
    let failure = Mutex<(any Error)?>(nil)
    Helpers.process.each(count) { number in
      do {
        try body(number)
      } catch {
        failure.withLock { if $0 == nil { $0 = error } }
      }
    }
    if let error = failure.withLock({ $0 }) { throw error }
  }
}
