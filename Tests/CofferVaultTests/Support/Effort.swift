import CofferTestSupport
import Foundation

/// How long tests that repeat themselves go on: a fixed number of rounds, or, with COFFER_SOAK in the environment, that
/// many minutes with seeds that no run had before.
enum Effort {
  static let soakMinutes = environment("COFFER_SOAK").flatMap(Double.init)
  /// Per cent of the usual rounds: COFFER_SEEDS asks for fewer, where a sanitizer makes each dear.
  private static let share = environment("COFFER_SEEDS").flatMap(Int.init) ?? 100

  /// COFFER_SEED, or in a soak one of its own, so that no two soaks try the same.
  static let firstSeed: UInt64 =
    environment("COFFER_SEED").flatMap { UInt64($0) }
    ?? (soakMinutes == nil ? 0 : UInt64(Date().timeIntervalSince1970) << 20)

  static func environment(_ name: String) -> String? { ProcessInfo.processInfo.environment[name] }

  /// As many of `count` rounds as are asked for.
  static func scaled(_ count: Int) -> Int { max(1, count * share / 100) }

  /// Calls `body` with seeds from 0 on, or from a seed that is printed.
  static func rounds(_ count: Int, _ body: (UInt64) throws -> Void) throws {
    guard let soakMinutes else {
      for seed in 0..<scaled(count) { try body(UInt64(seed)) }
      return
    }
    print("seeds from \(firstSeed)")
    let end = Date().addingTimeInterval(soakMinutes * 60)
    var seed = firstSeed
    while Date() < end {
      try body(seed)
      seed += 1
    }
  }
}
