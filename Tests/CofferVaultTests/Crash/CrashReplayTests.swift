import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

/// Power fails between any two storage operations, and within one; see `CrashDisk` for what a disk may then hold.
@Suite struct CrashReplayTests {
  private static let usualCutCount = 10_000
  /// Cuts at least; COFFER_CUTS in the environment asks for more or less.
  private static let cutCount = Effort.environment("COFFER_CUTS").flatMap(Int.init) ?? usualCutCount
  /// Fewer cuts are those of as many runs.
  private static let onceIn = max(1, usualCutCount / max(1, cutCount))

  @Test func `a crash at any storage operation leaves the vault of one of its commits`() throws {
    let total = Mutex(CrashReplay.Outcome())
    let states = Mutex<Set<String>>([])
    let nextSeed = Mutex(Effort.firstSeed)
    let end = Effort.soakMinutes.map { Date().addingTimeInterval($0 * 60) } ?? .distantPast
    let failure = Mutex<(any Error)?>(nil)
    DispatchQueue.concurrentPerform(iterations: 2) { _ in
      while total.withLock({ ($0.cutCount < Self.cutCount || Date() < end) && $0.damageCount == 0 }),
        failure.withLock({ $0 == nil })
      {
        let seed = nextSeed.withLock { seed in
          defer { seed += 1 }
          return seed
        }
        do {
          let run = try RecordedRun(seed: seed, commitCount: 8)
          let outcome = try CrashReplay(run).cut(
            reorderings: 2, onceIn: Self.onceIn, includingCreation: seed < Effort.firstSeed + 2)
          states.withLock { states in for state in outcome.states { states.insert("\(seed)/\(state)") } }
          total.withLock { $0.add(outcome) }
        } catch {
          failure.withLock { $0 = error }
        }
      }
    }
    if let error = failure.withLock({ $0 }) { throw error }
    let outcome = total.withLock { $0 }
    let found = states.withLock { $0.count }
    print(
      "crashes: \(outcome.cutCount), in commits \(outcome.cutsInCommits), with losses \(outcome.withLosses), "
        + "torn logs \(outcome.tornLogs), torn journals \(outcome.tornJournals), in creations \(outcome.inCreation), states \(found)"
    )
    for circumstance in Circumstance.allCases {
      print("crashes: \(circumstance.rawValue) \(outcome.circumstances[circumstance] ?? 0)")
    }
    #expect(outcome.damages == [])
    // It was not trivial.
    #expect(outcome.cutCount >= Self.cutCount)
    #expect(outcome.cutsInCommits > outcome.cutCount / 4)
    #expect(outcome.withLosses > outcome.cutCount / 4)
    // What is rare is counted where there are cuts enough for it: of a few hundred, chance decides how many tear a log.
    guard outcome.cutCount >= Self.usualCutCount else { return }
    #expect(outcome.tornLogs > outcome.cutCount / 100)
    #expect(outcome.tornJournals > outcome.cutCount / 100)
    #expect(outcome.inCreation > 0)
    for circumstance in Circumstance.allCases {
      #expect((outcome.circumstances[circumstance] ?? 0) > outcome.cutCount / 500, "\(circumstance)")
    }
    #expect(found > outcome.cutCount / 500)
  }
}
