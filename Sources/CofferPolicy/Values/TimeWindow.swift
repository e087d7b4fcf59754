/// Hours of the week at a fixed distance from UTC, so that changing the device's time zone does not move them.
public struct TimeWindow: Codable, Hashable, Sendable {
  /// ISO 8601 days of the week: 1 is Monday, 7 is Sunday.
  public var days: [Int]
  /// Minutes after midnight, included: 0...1439.
  public var start: Int
  /// Minutes after midnight, excluded; greater than `start`, at most 1440. A night is two windows.
  public var end: Int
  /// Minutes that the company's clock is ahead of UTC: -840...840.
  public var offset: Int

  public init(days: [Int], start: Int, end: Int, offset: Int) {
    self.days = days
    self.start = start
    self.end = end
    self.offset = offset
  }

  /// Whether its numbers are within their bounds: nobody may count with others.
  public var isWellFormed: Bool {
    !days.isEmpty && days.allSatisfy { (1...7).contains($0) } && (-840...840).contains(offset) && start >= 0
      && start < end
      && end <= 1440
  }

  /// Whether `time`, in seconds since 1970, lies within; nil when the window is malformed.
  func contains(_ time: Int64) -> Bool? {
    guard isWellFormed, (0..<Self.endOfTime).contains(time) else { return nil }
    let minutes = Int(time / 60) + offset
    let day = Int((Double(minutes) / 1440).rounded(.down))
    // 1970-01-01 was a Thursday.
    let weekday = ((day + 3) % 7 + 7) % 7 + 1
    return days.contains(weekday) && (start..<end).contains(minutes - day * 1440)
  }

  private static let endOfTime: Int64 = 253_402_300_800  // the year 10000
}
