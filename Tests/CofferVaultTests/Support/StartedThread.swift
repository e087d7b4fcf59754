import Foundation

/// Runs `body` on a thread of its own; tells when it has ended.
func startThread(_ body: @escaping @Sendable () -> Void) -> DispatchSemaphore {
  let ended = DispatchSemaphore(value: 0)
  Thread {
    body()
    ended.signal()
  }.start()
  return ended
}
