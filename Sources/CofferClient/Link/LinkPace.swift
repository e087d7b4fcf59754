internal import CofferSystem

/// Where a link gets the time that it lets pass, and the chance that spreads many links. Tests have their own.
public protocol LinkPace: Sendable {
  /// Returns after `duration`, sleep of the machine included, or throws when the task is cancelled.
  func wait(_ duration: Duration) async throws
  /// Between 0 and 1.
  func chance() -> Double
}

public struct SystemPace: LinkPace {
  public init() {}

  public func wait(_ duration: Duration) async throws { try await Task.sleep(for: duration, clock: .continuous) }
  public func chance() -> Double { Double.random(in: 0..<1) }
}

/// How long a link waits before it connects again: longer after each failure, up to a bound, and never as long as others
/// that failed at the same moment.
struct BackOff {
  static let shortest = Duration.seconds(1)
  static let longest = Duration.seconds(300)

  private var failures = 0

  /// The company answered.
  mutating func reset() { failures = 0 }

  /// - Parameters:
  ///   - asked: what the server asked for, which holds as far as it is within the bounds.
  mutating func next(asked: Duration?, chance: Double) -> Duration {
    let base = min(max(Self.shortest, asked ?? .zero), Self.longest)
    let ceiling = min(base * (1 << min(failures, 16)), Self.longest)
    failures += 1
    return ceiling * (0.5 + chance / 2)
  }
}
