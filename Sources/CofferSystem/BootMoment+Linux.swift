#if os(Linux)
  internal import Glibc

  extension BootMoment {
    /// The present one: `CLOCK_BOOTTIME` as the system counts it, whatever time namespace this process was put into, and
    /// the kernel's `boot_id`.
    ///
    /// Where the clock cannot be trusted the boot is an unknown one: a delay then begins anew with each process.
    static var system: BootMoment {
      var value = timespec()
      guard let offset = TimeNamespace.present, clock_gettime(CLOCK_BOOTTIME, &value) == 0,
        let seconds = seconds(value, ahead: offset)
      else {
        return BootMoment(boot: unknownBoot, seconds: 0)
      }
      return BootMoment(boot: systemBoot, seconds: seconds)
    }

    private static func seconds(_ value: timespec, ahead offset: (seconds: Int64, nanoseconds: Int64)) -> UInt64? {
      let (seconds, isOverflow) = Int64(value.tv_sec).subtractingReportingOverflow(offset.seconds)
      let whole = Int64(value.tv_nsec) < offset.nanoseconds ? seconds - 1 : seconds
      return isOverflow || whole < 0 ? nil : UInt64(whole)
    }

    private static let systemBoot: [UInt8] = {
      let uuid = try? KernelFile.text(of: "/proc/sys/kernel/random/boot_id", limit: 64)
      return uuid.map { boot(uuid: $0) } ?? unknownBoot
    }()
  }
#endif
