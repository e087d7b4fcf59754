/// How long nothing may be tried after so many wrong passcodes: Apple's table.
enum PasscodeDelays {
  /// Wrong passcodes after which a vault that was made so is wiped.
  static let wipingCount: UInt16 = 10
  /// What a record that was taken away or changed counts as: the longest delay, and the last try before a wipe.
  static let assumedCount: UInt16 = 9

  /// Seconds.
  static func seconds(after tryCount: UInt32) -> UInt64 {
    switch tryCount {
    case 0...4: 0
    case 5: 60
    case 6: 5 * 60
    case 7, 8: 15 * 60
    default: 60 * 60
    }
  }
}
