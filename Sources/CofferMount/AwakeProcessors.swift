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
  private var request: CInt = -1
  /// Elsewhere processors wake fast, or wait by themselves, or the request was refused.
  private var isWanted: Bool

  /// - Parameter isWanted: whether to ask where it helps.
  init(isWanted: Bool) { self.isWanted = isWanted && Self.areGuests }

  var areKept: Bool { request >= 0 }

  mutating func keep() {
    guard isWanted, request < 0 else { return }
    request = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC)
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

  /// Whether this machine's idle processors are left to the driver for guests, which was told not to wait.
  private static var areGuests: Bool {
    text(of: "/sys/devices/system/cpu/cpuidle/current_driver") == "haltpoll\n"
      && text(of: "/sys/module/haltpoll/parameters/guest_halt_poll_ns") == "0\n"
  }

  private static func text(of path: String) -> String? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = read(file, &bytes, bytes.count)
    return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
  }
}
