internal import Foundation

/// What a sanitizer must report: done on purpose, in a process of its own, to see that the sanitizer is on.
public enum Provocation: String, CaseIterable, Sendable {
  /// A byte behind what was allocated is written.
  case overflow
  /// Memory is forgotten that nobody gave back.
  case leak
  /// Two threads change a number, and nothing orders them.
  case race

  /// Returns where nothing noticed.
  public func carryOut() {
    switch self {
    case .overflow: Self.overflow(UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 16))
    case .leak: for count in 1000..<1064 { Self.forget(count) }
    case .race: Self.race()
    }
  }

  @inline(never) private static func overflow(_ buffer: UnsafeMutableRawBufferPointer) {
    buffer.baseAddress?.storeBytes(of: 1, toByteOffset: buffer.count, as: UInt8.self)
    buffer.deallocate()
  }

  /// More than one, so that an address that happens to be left on the stack hides no more than its own.
  @inline(never) private static func forget(_ count: Int) {
    UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16).storeBytes(of: 1, as: UInt8.self)
  }

  private final class Count: Sendable {
    nonisolated(unsafe) var value = 0
  }

  private static func race() {
    let count = Count()
    let done = DispatchSemaphore(value: 0)
    for _ in 0..<2 {
      Thread.detachNewThread {
        for _ in 0..<1000 { count.value += 1 }
        done.signal()
      }
    }
    for _ in 0..<2 { done.wait() }
  }
}
