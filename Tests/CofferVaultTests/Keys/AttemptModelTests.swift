import CofferCrypto
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// The gate against a model that knows the promise and nothing of records: random attempts, ends of the process at any
/// write, restarts, and clocks that somebody sets.
@Suite struct AttemptModelTests {
  /// What the promise says.
  private struct Model {
    var failures = 0
    /// Uptime in this boot from which a passcode may be tried.
    var openAt: UInt64 = 0
    var known: [String] = []

    static func delay(_ failures: Int) -> UInt64 {
      failures < 5 ? 0 : [5: 60, 6: 300, 7: 900, 8: 900][failures] ?? 3600
    }

    mutating func counted(at uptime: UInt64) {
      failures += 1
      openAt = uptime + Self.delay(failures)
    }
  }

  @Test func `every sequence of attempts is counted and delayed as the table says`() throws {
    var derivations = 0
    var refusals = 0
    var ends = 0
    var rounds = 0
    try Effort.rounds(300) { seed in
      var generator = SeededGenerator(seed: seed)
      let fixture = try LockedFixture()
      var model = Model()
      rounds += 1
      for step in 0..<60 {
        let text = "seed \(seed), step \(step)"
        switch Int.random(in: 0..<12, using: &generator) {
        case 0:
          fixture.time.reboot(uptime: UInt64.random(in: 0..<5000, using: &generator))
          let delay = Model.delay(model.failures)
          // Seen by whoever looks first.
          model.openAt = fixture.time.sinceBoot().seconds + delay
          _ = try? fixture.verdict()
        case 1: fixture.time.setWall(Int64.random(in: 0..<4_000_000_000, using: &generator))
        case 2, 3, 4: fixture.time.advance(UInt64.random(in: 0..<4000, using: &generator))
        case 5:
          // The record is taken away or changed: the longest delay, from now on.
          if generator.once(in: 2) {
            fixture.store[.attempts] = nil
          } else {
            var bytes = fixture.store[.attempts] ?? []
            bytes[Int.random(in: 0..<bytes.count, using: &generator)] ^= 4
            fixture.store[.attempts] = bytes
          }
          model = Model(failures: 8)
          model.counted(at: fixture.time.sinceBoot().seconds)
          _ = try fixture.verdict()
        default:
          let passcode = generator.once(in: 6) ? "right" : "wrong \(Int.random(in: 0..<4, using: &generator))"
          let isEnding = generator.once(in: 4)
          let ending = Int.random(in: 0..<2, using: &generator)
          let isStored = generator.once(in: 2)
          if isEnding { fixture.store.end(afterWrites: ending, storing: isStored) }
          let uptime = fixture.time.sinceBoot().seconds
          let outcome = fixture.attempt(passcode)
          let hasEnded = fixture.store.begin()
          if uptime < model.openAt {
            #expect(outcome == .refused(model.openAt - uptime), "\(text)")
            refusals += 1
            continue
          }
          let before = model
          if hasEnded {
            ends += 1
            // At the count: nothing was derived, whether or not it was stored. At the end: it stays counted, unless the
            // outcome was stored.
            #expect(outcome == (ending == 0 ? .endedBefore : .endedAfter), "\(text)")
            if ending == 0, !isStored { continue }
            model.counted(at: uptime)
            if ending == 0 || !isStored { continue }
          } else {
            model.counted(at: uptime)
            #expect(outcome == (passcode == "right" ? .right : .wrong), "\(text)")
          }
          derivations += 1
          if passcode == "right" {
            model = Model()
          } else if before.known.contains(passcode) {
            model = before
          } else {
            model.known.append(passcode)
            if model.known.count > AttemptRecord.markLimit { model.known.removeFirst() }
          }
        }
      }
    }
    #expect(min(derivations, refusals, ends) > rounds)
  }

  @Test func `guesses in parallel get no more derivations than the table allows`() throws {
    for round in 0..<20 {
      let fixture = try LockedFixture()
      let wrong = Mutex(0)
      DispatchQueue.concurrentPerform(iterations: 24) { guess in
        if case .wrong = fixture.attempt("guess \(round) \(guess)") { wrong.withLock { $0 += 1 } }
      }
      #expect(fixture.derivationCount == 5)
      #expect(wrong.withLock { $0 } == 5)
      #expect(fixture.attempt("right") == .refused(60))
      fixture.time.advance(60)
      DispatchQueue.concurrentPerform(iterations: 24) { guess in _ = fixture.attempt("more \(round) \(guess)") }
      #expect(fixture.derivationCount == 6)
      #expect(fixture.attempt("right") == .refused(300))
    }
  }

  @Test func `ten wrong passcodes destroy a vault that was made so, and no eleventh is derived`() throws {
    for isKilled in [false, true] {
      let fixture = try LockedFixture(options: KeybagOptions(wipesAfterTenFailures: true))
      for count in 1...9 {
        #expect(fixture.attempt("wrong \(count)") == .wrong)
        fixture.time.advance(3600)
      }
      if isKilled {
        // Behind the count of the tenth, before anyone learns what it was.
        fixture.store.end(afterWrites: 1, storing: false)
        #expect(fixture.attempt("wrong 10") == .endedAfter)
        #expect(fixture.store.begin())
        fixture.time.advance(3600)
        #expect(fixture.attempt("right") == .wiped)
      } else {
        #expect(fixture.attempt("wrong 10") == .wiped)
      }
      #expect(fixture.derivationCount == 10)
      #expect(fixture.store[.deviceSecret] == nil && fixture.store[.rotation] == nil)
      #expect(try fixture.folder.contents(of: VaultFormat.keybag) == nil)
      #expect(fixture.attempt("right") == .wiped)
    }
    let fixture = try LockedFixture()
    for count in 1...14 {
      #expect(fixture.attempt("wrong \(count)") == .wrong)
      fixture.time.advance(3600)
    }
    #expect(fixture.attempt("right") == .right)
  }

  @Test func `a damaged record of a vault that wipes leaves one try, after the longest delay`() throws {
    let fixture = try LockedFixture(options: KeybagOptions(wipesAfterTenFailures: true))
    fixture.store[.attempts] = nil
    #expect(fixture.attempt("right") == .refused(3600))
    fixture.time.advance(3599)
    #expect(fixture.attempt("right") == .refused(1))
    fixture.time.advance(1)
    #expect(fixture.attempt("right") == .right)
    fixture.store[.attempts] = nil
    #expect(fixture.attempt("right") == .refused(3600))
    fixture.time.advance(3600)
    #expect(fixture.attempt("wrong") == .wiped)
  }

  @Test func `what is kept of a wrong passcode is not a fast hash of it`() throws {
    let fixture = try LockedFixture()
    #expect(fixture.attempt("wrong") == .wrong)
    let record = try #require(fixture.store[.attempts])
    let secret = try #require(try fixture.store.read(.deviceSecret, of: fixture.id))
    let device = try DeviceKeys(secret: secret, vault: fixture.id)
    let marks = try AttemptRecord(decoding: record, key: device.attempts).marks
    let derivation = try Keybag(parsing: fixture.folder.contents(of: VaultFormat.keybag) ?? []).derivation
    #expect(marks == [device.mark(try fixture.derived("wrong", derivation))])
    #expect(marks != [device.mark(try fixture.derived("Wrong", derivation))])
  }
}
