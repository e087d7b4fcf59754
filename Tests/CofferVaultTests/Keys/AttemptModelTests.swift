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
    /// Proved wrong.
    var failures = 0
    /// Nobody knows what became of them.
    var pending = 0
    /// Uptime in this boot from which a passcode may be tried.
    var openAt: UInt64 = 0
    var known: [String] = []

    static func delay(_ failures: Int) -> UInt64 {
      failures < 5 ? 0 : [5: 60, 6: 300, 7: 900, 8: 900][failures] ?? 3600
    }

    var delay: UInt64 { Self.delay(failures + pending) }

    mutating func begun(at uptime: UInt64) {
      pending += 1
      openAt = uptime + delay
    }

    mutating func provedWrong() {
      pending -= 1
      failures += 1
    }
  }

  @Test func `every sequence of attempts is counted and delayed as the table says`() throws {
    var derivations = 0
    var refusals = 0
    var ends = 0
    var rounds = 0
    var wipes = 0
    var endsOfWiping = 0
    var shortages = 0
    try Effort.rounds(300) { seed in
      var generator = SeededGenerator(seed: seed)
      let isWiping = generator.once(in: 2)
      let fixture = try LockedFixture(options: KeybagOptions(wipesAfterTenFailures: isWiping))
      var model = Model()
      rounds += 1
      steps: for step in 0..<60 {
        let text = "seed \(seed), step \(step)"
        switch Int.random(in: 0..<12, using: &generator) {
        case 0:
          fixture.time.reboot(uptime: UInt64.random(in: 0..<5000, using: &generator))
          // Seen by whoever looks first.
          model.openAt = fixture.time.sinceBoot().seconds + model.delay
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
          model = Model(failures: 9, openAt: fixture.time.sinceBoot().seconds + Model.delay(9))
          _ = try fixture.verdict()
        default:
          let passcode = generator.once(in: 6) ? "right" : "wrong \(Int.random(in: 0..<4, using: &generator))"
          let isEnding = generator.once(in: 4)
          let ending = Int.random(in: 0..<2, using: &generator)
          let isStored = generator.once(in: 2)
          let hasMemory = !generator.once(in: 3)
          if isEnding { fixture.store.end(afterWrites: ending, storing: isStored) }
          let uptime = fixture.time.sinceBoot().seconds
          let outcome = fixture.attempt(passcode, hasMemory: hasMemory)
          let hasEnded = fixture.store.begin()
          if uptime < model.openAt {
            #expect(outcome == .refused(model.openAt - uptime), "\(text)")
            refusals += 1
            continue
          }
          let before = model
          if hasEnded {
            ends += 1
            if isWiping, model.failures == 9 { endsOfWiping += 1 }
            // At the count: nothing was derived, whether or not it was stored. At the end: it delays, and is nothing
            // that was proved, unless the outcome was stored.
            #expect(outcome == (ending == 0 ? .endedBefore : .endedAfter), "\(text)")
            if ending == 0, !isStored { continue }
            model.begun(at: uptime)
            if ending == 0 || !isStored { continue }
          } else {
            model.begun(at: uptime)
            let isTenth = isWiping && model.failures == 9 && !before.known.contains(passcode)
            let known: LockedFixture.Outcome = passcode == "right" ? .right : isTenth ? .wiped : .wrong
            #expect(outcome == (hasMemory ? known : .noMemory), "\(text)")
          }
          guard hasMemory else {
            // Nothing was derived: as if nobody had tried.
            model = before
            shortages += 1
            continue
          }
          derivations += 1
          if passcode == "right" {
            model = Model()
          } else if before.known.contains(passcode) {
            model = before
          } else {
            model.provedWrong()
            model.known.append(passcode)
            if model.known.count > AttemptRecord.markLimit { model.known.removeFirst() }
          }
          guard isWiping, model.failures == 10 else { continue }
          // Also where the process ended between the proof and the wipe.
          #expect(fixture.attempt("right") == .wiped, "\(text)")
          wipes += 1
          break steps
        }
      }
    }
    // Each is tried; in fewer rounds, where COFFER_SEEDS asks for them, a rare one may not be.
    guard rounds >= 30 else { return }
    #expect(min(derivations, refusals, ends) > rounds)
    #expect(shortages > rounds / 3)
    #expect(min(wipes, endsOfWiping) > rounds / 20)
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
    for isKilled in [false, true] {  // before it could wipe
      let fixture = try LockedFixture(options: KeybagOptions(wipesAfterTenFailures: true))
      for count in 1...9 {
        #expect(fixture.attempt("wrong \(count)") == .wrong)
        fixture.time.advance(3600)
      }
      if isKilled {
        // Behind the proof of the tenth, before anyone learns of it.
        fixture.store.end(afterWrites: 1, storing: true)
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

  @Test func `tries that nobody knows the outcome of delay, and destroy nothing`() throws {
    let fixture = try LockedFixture(options: KeybagOptions(wipesAfterTenFailures: true))
    for count in 1...30 {
      // Ended behind the count, or before the outcome was stored; whichever passcode it was.
      fixture.store.end(afterWrites: count % 2, storing: count % 2 == 0)
      #expect([.endedBefore, .endedAfter].contains(fixture.attempt(count % 3 == 0 ? "right" : "wrong \(count)")))
      #expect(fixture.store.begin())
      let delay = Model.delay(count)
      #expect(try fixture.verdict() == (delay == 0 ? .open : .delayed(seconds: delay)))
      fixture.time.advance(delay)
    }
    // Nine that were proved leave the tenth, whatever was ended between them.
    for count in 1...9 {
      #expect(fixture.attempt("proved \(count)") == .wrong)
      fixture.time.advance(3600)
      fixture.store.end(afterWrites: 1, storing: false)
      #expect(fixture.attempt("ended \(count)") == .endedAfter)
      #expect(fixture.store.begin())
      fixture.time.advance(3600)
    }
    #expect(fixture.attempt("right") == .right)
    #expect(fixture.attempt("wrong") == .wrong)
    #expect(fixture.attempt("right") == .right)
  }

  @Test func `right passcodes at the same moment open, however many, and one is derived at a time`() throws {
    let fixture = try LockedFixture(options: KeybagOptions(wipesAfterTenFailures: true))
    let locked = try LockedVault(in: fixture.folder, keyStore: fixture.store, time: fixture.time)
    let deriving = Atomic(0)
    DispatchQueue.concurrentPerform(iterations: 40) { _ in
      #expect(throws: Never.self) {
        _ = try locked.unlock(passcode: { VaultFixture.passcode("right") }) { derivation, _ in
          #expect(deriving.wrappingAdd(1, ordering: .relaxed).newValue == 1)
          defer { deriving.wrappingSubtract(1, ordering: .relaxed) }
          return try fixture.derived("right", derivation)
        }
      }
    }
    #expect(try fixture.verdict() == .open)
  }

  @Test(arguments: ["right", "wrong", nil])
  func `a wipe that comes while a passcode is derived is final`(_ passcode: String?) throws {
    for isComplete in [false, true] {
      let fixture = try LockedFixture(options: KeybagOptions(wipesAfterTenFailures: true))
      let locked = try LockedVault(in: fixture.folder, keyStore: fixture.store, time: fixture.time)
      let derive: LockedVault.Derive = { derivation, _ in
        try KeyDestruction(folder: fixture.folder, keyStore: fixture.store, vault: fixture.id).run()
        if isComplete { try fixture.store.removeAll(of: fixture.id) }
        // Nor does one leave anything for which there was no memory.
        guard let passcode else { throw CryptoError.noMemory(byteCount: derivation.memory) }
        return try fixture.derived(passcode, derivation)
      }
      #expect(throws: VaultError.wiped) {
        _ = try locked.unlock(passcode: { VaultFixture.passcode(passcode ?? "right") }, deriving: derive)
      }
      for item in KeyStoreItem.allCases where item != .wiped { #expect(fixture.store[item] == nil) }
    }
  }

  @Test func `a try for which there is no memory is none, and others that come meanwhile stay counted`() throws {
    let fixture = try LockedFixture(options: KeybagOptions(wipesAfterTenFailures: true))
    let before = fixture.store[.attempts]
    for _ in 1...30 { #expect(fixture.attempt("wrong", hasMemory: false) == .noMemory) }
    #expect(fixture.store[.attempts] == before && fixture.derivationCount == 0)
    // Another process's, between the count and the failure: each vault has its own turn.
    let locked = try LockedVault(in: fixture.folder, keyStore: fixture.store, time: fixture.time)
    for count in 1...4 {
      let derive: LockedVault.Derive = { derivation, _ in
        #expect(fixture.attempt("wrong \(count)") == .wrong)
        throw CryptoError.noMemory(byteCount: derivation.memory)
      }
      #expect(throws: CryptoError.self) {
        _ = try locked.unlock(passcode: { VaultFixture.passcode("right") }, deriving: derive)
      }
    }
    #expect(fixture.attempt("wrong 5") == .wrong)
    #expect(fixture.derivationCount == 5)
    #expect(fixture.attempt("right") == .refused(60))
  }

  @Test func `an empty passcode is no try`() throws {
    let fixture = try LockedFixture()
    let before = fixture.store[.attempts]
    #expect(fixture.attempt("") == .other("the passcode is empty; nothing was tried"))
    #expect(fixture.store[.attempts] == before && fixture.derivationCount == 0)
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
