internal import CofferSystem

/// What this machine's processors do when they have nothing to run, as far as it decides what waking one costs.
enum IdleDriver: Equatable {
  /// The driver for guests of KVM (cpuidle-haltpoll), which was told not to wait before it halts: unless somebody asks the kernel for
  /// no latency (PM QoS).
  case haltsAtOnce
  /// They wake fast, wait by themselves, or halt at once while nothing that keeps them from it is of use: in a guest of a guest without any
  /// driver, a thread that turned beside the work slowed that down.
  case other

  static var present: IdleDriver {
    IdleDriver(
      driver: try? KernelFile.text(of: "/sys/devices/system/cpu/cpuidle/current_driver"),
      pollTime: try? KernelFile.text(of: "/sys/module/haltpoll/parameters/guest_halt_poll_ns"))
  }

  /// - Parameters:
  ///   - driver, pollTime: what the kernel's files say of its name, and of the nanoseconds that it waits.
  init(driver: String?, pollTime: String?) {
    self = driver == "haltpoll\n" && pollTime == "0\n" ? .haltsAtOnce : .other
  }
}
