internal import CofferSystem
internal import Synchronization

/// Buffers for content on its way to the kernel. They are kept, because a new one costs more than what it is filled with,
/// and hold plaintext, so that a lock overwrites them.
final class AnswerBuffers: Sendable {
  /// As much as one request can ask for.
  static let size = 1 << 20

  /// So many are kept: more are needed only while many programs wait for a slow disk.
  private static let idleLimit = FuseSession.threadCount

  private struct State {
    nonisolated(unsafe) var idle: [UnsafeMutableRawBufferPointer] = []
    /// Rises with each overwriting.
    var age = 0
  }

  private let state = Mutex(State())

  deinit {
    overwriteAll()
    for buffer in state.withLock({ $0.idle }) { TransferMemory.free(buffer) }
  }

  func with<Result>(_ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> Result) rethrows -> Result {
    let (found, age) = state.withLock { ($0.idle.popLast(), $0.age) }
    let buffer = found ?? TransferMemory.allocate(byteCount: Self.size)
    defer { giveBack(buffer, of: age) }
    return try body(UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(count, Self.size)]))
  }

  /// - Parameter age: that of the state since which it may hold something.
  private func giveBack(_ buffer: UnsafeMutableRawBufferPointer, of age: Int) {
    var age = age
    while true {
      // Looked at and given back at once: what is overwritten next must be among those that are idle.
      let (present, isKept) = state.withLock { state in
        let isKept = state.age == age && state.idle.count < Self.idleLimit
        if isKept { state.idle.append(buffer) }
        return (state.age, isKept)
      }
      if isKept { return }
      overwrite(buffer)
      if present == age { return TransferMemory.free(buffer) }
      age = present
    }
  }

  /// Nothing of what was read stays in the buffers: those in use follow when they come back.
  func overwriteAll() {
    let idle = state.withLock { state in
      state.age += 1
      defer { state.idle = [] }
      return state.idle
    }
    for buffer in idle { overwrite(buffer) }
    state.withLock { $0.idle += idle }
  }
}
