#if os(Linux)
  internal import Glibc

  extension BootMoment {
    /// The present one: `CLOCK_BOOTTIME` and the kernel's `boot_id`.
    static var system: BootMoment {
      var value = timespec()
      guard clock_gettime(CLOCK_BOOTTIME, &value) == 0 else { return BootMoment(boot: systemBoot, seconds: 0) }
      return BootMoment(boot: systemBoot, seconds: UInt64(max(0, value.tv_sec)))
    }

    private static let systemBoot: [UInt8] = {
      let file = try? FileSystem().open("/proc/sys/kernel/random/boot_id", .readOnly)
      guard let bytes = try? file?.contents(limit: 64) else { return unknownBoot }
      return boot(uuid: String(decoding: bytes, as: UTF8.self))
    }()
  }
#endif
