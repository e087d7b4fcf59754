internal import Glibc

/// What this machine's processors do when they have nothing to run, as far as it decides what waking one costs.
enum IdleDriver: Equatable {
  /// The driver for guests of KVM (cpuidle-haltpoll), which was told not to wait before it halts: unless somebody asks the kernel for
  /// no latency (PM QoS).
  case haltsAtOnce
  /// A guest without any driver halts at once, too, and no request keeps it from that.
  case missing
  /// They wake fast, or wait by themselves.
  case other

  static var present: IdleDriver {
    IdleDriver(
      driver: text(of: "/sys/devices/system/cpu/cpuidle/current_driver"),
      pollTime: text(of: "/sys/module/haltpoll/parameters/guest_halt_poll_ns"),
      processors: text(of: "/proc/cpuinfo") ?? "")
  }

  /// - Parameters:
  ///   - driver, pollTime, processors: what the kernel's files say of the driver's name, of the nanoseconds that it waits, and of the
  ///     processors.
  init(driver: String?, pollTime: String?, processors: String) {
    let isGuest = processors.split(whereSeparator: \.isWhitespace).contains("hypervisor")
    switch (driver, pollTime) {
    case ("haltpoll\n", "0\n"): self = .haltsAtOnce
    case ("none\n", _) where isGuest: self = .missing
    default: self = .other
    }
  }

  /// The beginning of a file, with the first processor's flags.
  private static func text(of path: String) -> String? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(file, &bytes, bytes.count)
    return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
  }
}
