internal import Glibc

/// Asks the kernel to keep idle processors awake while programs wait for a mount's answers, as its own default would.
///
/// A program sleeps until its request is answered, and so leaves its processor idle for some microseconds. A guest of KVM that
/// halts it at once pays twice for that, for leaving the guest and for the interrupt that brings it back: more than for the
/// answer. The kernel's driver for such guests (cpuidle-haltpoll) waits a while before it halts, unless whoever made the
/// machine has set that to zero. A request for no latency (PM QoS, `/dev/cpu_dma_latency`) makes it wait as long as the request
/// stands. It stands only while requests come, ends with the process, and is for root alone.
///
/// Used by one thread.
struct AwakeProcessors {
  private static let device = "/dev/cpu_dma_latency"
  private var request: CInt = -1
  /// Elsewhere processors wake fast, or wait by themselves, or the request was refused.
  private var isWanted: Bool

  /// - Parameter isWanted: whether to ask where it helps.
  init(isWanted: Bool) { self.isWanted = isWanted && IdleDriver.present == .haltsAtOnce }

  /// Whether this process may ask the kernel.
  static var mayBeKept: Bool { access(device, W_OK) == 0 }

  var areKept: Bool { request >= 0 }

  mutating func keep() {
    guard isWanted, request < 0 else { return }
    request = open(Self.device, O_WRONLY | O_CLOEXEC)
    // Microseconds, as a native integer of four bytes.
    var latency: Int32 = 0
    if request >= 0, write(request, &latency, 4) == 4 { return }
    release()
    isWanted = false
  }

  mutating func release() {
    guard request >= 0 else { return }
    close(request)
    request = -1
  }
}
