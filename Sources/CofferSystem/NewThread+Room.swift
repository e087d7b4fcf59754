internal import Foundation

extension NewThread {
  /// Throws where the system does not give so many threads at once. They end before this returns or soon after, so that others may
  /// still take their places: it is for what waits for ever where there are none, as Swift's own pool and Dispatch's do.
  public static func requireRoom(for count: Int) throws(SystemError) {
    let gathering = Gathering()
    defer { gathering.end() }
    for _ in 0..<count { try start(stackByteCount: 64 << 10) { gathering.wait() } }
  }

  /// Threads that stay until all of them are there.
  private final class Gathering: @unchecked Sendable {
    private let condition = NSCondition()
    /// Under `condition`.
    private var isOver = false

    func wait() { condition.withLock { while !isOver { condition.wait() } } }

    func end() {
      condition.withLock {
        isOver = true
        condition.broadcast()
      }
    }
  }
}
