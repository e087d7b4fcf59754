internal import Foundation
internal import Synchronization

/// Two threads, each with a file of its own: each writes and syncs, and again.
///
/// What is durable is then one of a grid: so many rounds of the one, and so many of the other.
public struct WriterRace: Sendable {
  public static let rounds = 2

  /// Of the two files.
  public let paths: [String]
  /// For each file, what is written in each round.
  let writes: [[(offset: Int, bytes: [UInt8])]]
  /// The number of the state after `rounds` and `rounds`; those of the others are just below.
  public let lastState: Int

  /// How many states the grid has, without the one before everything.
  static let stateCount = (rounds + 1) * (rounds + 1) - 1

  /// The number of the state after so many rounds of each file.
  public func state(_ one: Int, _ two: Int) -> Int {
    lastState + 1 - (Self.rounds + 1) * (Self.rounds + 1) + one * (Self.rounds + 1) + two
  }

  /// The states that may be found, given how far each writer began and was told that it is durable.
  public func states(began: [Int], durable: [Int]) -> [Int] {
    (durable[0]...began[0]).flatMap { one in (durable[1]...began[1]).map { two in state(one, two) } }
  }

  /// What the grid's states hold, in the order of their numbers; takes `expected` to the last.
  func apply(to expected: inout ExpectedVault) -> [ExpectedVault] {
    var states: [ExpectedVault] = []
    var start = expected
    for one in 0...Self.rounds {
      if one > 0 { change(0, round: one - 1).apply(to: &start) }
      var state = start
      states.append(state.joined)
      for two in 0..<Self.rounds {
        change(1, round: two).apply(to: &state)
        states.append(state.joined)
      }
      expected = state
    }
    return Array(states.dropFirst())
  }

  private func change(_ file: Int, round: Int) -> VaultChange {
    let (offset, bytes) = writes[file][round]
    return .write(path: paths[file], offset: offset, bytes: bytes)
  }
}
