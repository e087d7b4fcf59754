/// Whether something holds that was made for a time.
enum Lifetime {
  /// Seconds by which a clock may be set back without anybody noticing.
  static let tolerance: Int64 = 300

  /// Not after its end, and not when it was made later than now: a clock that was ahead then, and was put right since, has
  /// given it an end that nobody meant.
  static func holds(from start: Int64, until end: Int64, at now: Int64) -> Bool {
    start <= now + tolerance && now < end
  }
}
