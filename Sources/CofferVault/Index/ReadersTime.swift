/// How long a transaction's readers may keep it from its end: not longer than its own rows take, so that whoever waits for it
/// waits twice as long at most, however many they are.
struct ReadersTime {
  private let now: () -> UInt64
  private let start: UInt64
  /// Of the turns so far, in nanoseconds.
  private var spent: UInt64 = 0
  /// Where the present turn began.
  private var turn: UInt64?

  /// So much more, for the first rows.
  private static let allowance: UInt64 = 1_000_000

  /// - Parameter now: nanoseconds of a clock that nobody sets.
  init(now: @escaping () -> UInt64) {
    self.now = now
    start = now()
  }

  /// Whether another reader may be let in. The first of a turn begins it.
  mutating func isLeft() -> Bool {
    let now = self.now()
    let began = turn ?? now
    turn = began
    let all = spent + (now - began)
    return all <= now - start - all + Self.allowance
  }

  /// The turn is over.
  mutating func didLetIn() {
    guard let began = turn else { return }
    spent += now() - began
    turn = nil
  }
}
