/// The order of what a device sends. A request that was given up may arrive all the same, behind the one that was sent in its
/// place.
enum Delivery {
  /// Seconds in which that can be. A device whose clock was set back is believed again after them.
  static let window: Int64 = 180

  /// Throws a problem when what was sent at `sentAt` is older than what was `kept`. Both are by the device's clock, in
  /// milliseconds; a device that does not say is believed.
  static func demandNewer(_ sentAt: Int64?, than kept: Int64?, keptAt: Int64?, now: Int64) throws {
    guard let sentAt, let kept, let keptAt, sentAt < kept, abs(now - keptAt) < window else { return }
    throw HTTPProblem(.conflict, "What the device sent later is here already.")
  }
}
