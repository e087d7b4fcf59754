/// Requests in a row that have waited. Those of a single thread are one after the other, and what the kernel asks by itself
/// waits for nobody: to answer them by turns on two processors takes longer than on one. Others may wait in earnest.
struct Backlog {
  private var count = 0
  private var last: UInt32 = 0

  /// How many of different threads make another thread worth its waking.
  private static let limit = 4

  /// Takes note of a request; whether another thread shall help.
  ///
  /// - Parameters:
  ///   - requester: the thread that asks; 0 is the kernel itself.
  ///   - hasWaited: the request was there before anybody looked for it.
  mutating func isLong(with requester: UInt32, hasWaited: Bool) -> Bool {
    guard hasWaited else {
      count = 0
      return false
    }
    if requester == 0 || requester == last { return false }
    last = requester
    count += 1
    guard count >= Self.limit else { return false }
    count = 0
    return true
  }
}
