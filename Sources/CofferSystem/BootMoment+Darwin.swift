#if canImport(Darwin)
  internal import Darwin

  extension BootMoment {
    /// The present one: `mach_continuous_time` and `kern.bootsessionuuid`.
    static var system: BootMoment {
      var base = mach_timebase_info_data_t()
      guard mach_timebase_info(&base) == KERN_SUCCESS, base.denom > 0 else {
        return BootMoment(boot: systemBoot, seconds: 0)
      }
      let (high, low) = mach_continuous_time().multipliedFullWidth(by: UInt64(base.numer))
      let nanoseconds = UInt64(base.denom).dividingFullWidth((high, low)).quotient
      return BootMoment(boot: systemBoot, seconds: nanoseconds / 1_000_000_000)
    }

    private static let systemBoot: [UInt8] = {
      var text = [CChar](repeating: 0, count: 64)
      var count = text.count
      guard sysctlbyname("kern.bootsessionuuid", &text, &count, nil, 0) == 0 else { return unknownBoot }
      return boot(uuid: String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }()
  }
#endif
