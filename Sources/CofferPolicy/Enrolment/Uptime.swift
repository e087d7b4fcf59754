/// A moment on the device's clock that counts from its start, through sleep, and that nobody sets.
public struct Uptime: Codable, Hashable, Sendable {
  /// Which start of the system it counts from: any text that is another one after each start.
  public var boot: String
  /// Seconds since then.
  public var seconds: Int64

  public init(boot: String, seconds: Int64) {
    self.boot = boot
    self.seconds = seconds
  }

  /// Seconds from `earlier` to this moment; 0 where the system was started between the two.
  func elapsed(since earlier: Uptime?) -> Int64 {
    guard let earlier, earlier.boot == boot, seconds > earlier.seconds else { return 0 }
    return seconds - earlier.seconds
  }
}
