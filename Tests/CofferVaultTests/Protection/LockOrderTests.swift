import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// Locks and unlocks that cross: what observers hear, and what is there when they hear it.
@Suite struct LockOrderTests {
  private let fixture: VaultFixture
  private let vault: Vault
  private let keys: UnlockedKeys
  private let file: OpenFile
  private let scheduler = InterleavingTests.Manual()

  init() throws {
    fixture = try VaultFixture()
    var options = VaultOptions()
    options.scheduler = scheduler
    vault = try fixture.create(options: options)
    keys = try Vault.unlocked(
      in: vault.folder, id: vault.id, keyStore: fixture.keyStore, time: SystemTime(), passcode: VaultFixture.passcode()
    ).keys
    file = try vault.createFile(at: VaultPath("file"))
    try file.write([1, 2, 3], at: 0)
  }

  private var isReadable: Bool { (try? file.read(3, at: 0)) == [1, 2, 3] }

  /// What may follow what, and the state in which it is heard.
  private static let next: [VaultEvent: [VaultEvent]] = [
    .willBecomeUnavailable: [.isBecomingUnavailable, .didBecomeAvailable],
    .isBecomingUnavailable: [.didBecomeUnavailable], .didBecomeUnavailable: [.didBecomeAvailable],
    .didBecomeAvailable: [.willBecomeUnavailable],
  ]

  private func expectOrder(_ events: [VaultEvent], sourceLocation: SourceLocation = #_sourceLocation) {
    for (event, after) in zip([.didBecomeAvailable] + events, events) {
      #expect(Self.next[event]?.contains(after) == true, "\(event), then \(after)", sourceLocation: sourceLocation)
    }
  }

  @Test func `threads that lock and unlock are heard in the order in which it happened`() {
    let events = Mutex<[VaultEvent]>([])
    let isInside = Atomic(false)
    let observation = vault.observe { [vault] event in
      let isTwice = isInside.exchange(true, ordering: .acquiringAndReleasing)
      #expect(!isTwice)
      defer { isInside.store(false, ordering: .releasing) }
      events.withLock { $0.append(event) }
      switch event {
      case .willBecomeUnavailable: #expect(vault.lockState == .locking && isReadable)
      case .isBecomingUnavailable:
        // There for whoever has a file open, and for nobody else.
        #expect(vault.lockState == .locking && isReadable)
        #expect(throws: Never.self) { try file.write([3], at: 2) }
        #expect(throws: VaultError.locked) { try vault.open(VaultPath("file"), .reading) }
      case .didBecomeUnavailable: #expect(vault.lockState == .locked && !isReadable)
      case .didBecomeAvailable: #expect(vault.lockState == .unlocked && isReadable)
      }
    }
    DispatchQueue.concurrentPerform(iterations: 6) { number in
      var generator = SeededGenerator(seed: UInt64(number))
      for _ in 0..<200 {
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: vault.lock(graceSeconds: 0)
        case 1: vault.lock(graceSeconds: 10)
        case 2: scheduler.run()
        default: vault.takeBack(keys)
        }
      }
    }
    let heard = events.withLock { $0 }
    expectOrder(heard)
    #expect(Set(heard).count == 4)
    // Whoever has heard all of it knows how it is.
    let last: VaultEvent = heard.last ?? .didBecomeAvailable
    #expect(
      vault.lockState == (last == .didBecomeAvailable ? .unlocked : last == .didBecomeUnavailable ? .locked : .locking))
    withExtendedLifetime(observation) {}
  }

  @Test func `two that lock at once both return when the keys are gone`() {
    let (isDropping, mayDrop) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let (second, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let observation = vault.observe { event in
      guard event == .isBecomingUnavailable else { return }
      isDropping.signal()
      mayDrop.wait()
    }
    for number in 0..<2 {
      Thread.detachNewThread { [vault] in
        if number == 1 {
          isDropping.wait()
          second.signal()
        }
        vault.lock(graceSeconds: 0)
        #expect(vault.lockState == .locked && !isReadable)
        done.signal()
      }
    }
    second.wait()
    for _ in 0..<1000 { sched_yield() }
    mayDrop.signal()
    done.wait()
    done.wait()
    withExtendedLifetime(observation) {}
  }

  @Test func `an unlock that comes while the keys go waits, and brings them back`() {
    let (isDropping, mayDrop, done) = (
      DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
    )
    let events = Mutex<[VaultEvent]>([])
    let observation = vault.observe { event in
      events.withLock { $0.append(event) }
      guard event == .isBecomingUnavailable else { return }
      isDropping.signal()
      mayDrop.wait()
    }
    Thread.detachNewThread { [vault] in
      vault.lock(graceSeconds: 0)
      done.signal()
    }
    isDropping.wait()
    Thread.detachNewThread { [vault] in
      vault.takeBack(keys)
      done.signal()
    }
    for _ in 0..<1000 { sched_yield() }
    mayDrop.signal()
    done.wait()
    done.wait()
    #expect(vault.lockState == .unlocked && isReadable)
    #expect(
      events.withLock { $0 } == [
        .willBecomeUnavailable, .isBecomingUnavailable, .didBecomeUnavailable, .didBecomeAvailable,
      ])
    withExtendedLifetime(observation) {}
  }

  @Test func `an observer may lock and unlock, and the others hear it in order`() {
    let events = Mutex<[VaultEvent]>([])
    let rounds = Mutex(0)
    let observations = [
      vault.observe { [vault] event in
        switch event {
        case .willBecomeUnavailable: vault.lock(graceSeconds: 0)
        case .isBecomingUnavailable: vault.takeBack(keys)
        case .didBecomeUnavailable: break
        case .didBecomeAvailable:
          let round = rounds.withLock { rounds in
            rounds += 1
            return rounds
          }
          if round < 3 { vault.lock(graceSeconds: 0) }
        }
      },
      vault.observe { event in events.withLock { $0.append(event) } },
    ]
    vault.lock(graceSeconds: 10)
    let round: [VaultEvent] = [
      .willBecomeUnavailable, .isBecomingUnavailable, .didBecomeUnavailable, .didBecomeAvailable,
    ]
    #expect(events.withLock { $0 } == round + round + round)
    #expect(vault.lockState == .unlocked && isReadable)
    withExtendedLifetime(observations) {}
  }

  @Test func `the system's scheduler counts the time in which the machine sleeps`() {
    let start = ContinuousClock.now
    let now = Mutex(start)
    let waiting = Mutex<[(seconds: Double, body: @Sendable () -> Void)]>([])
    let scheduler = SystemScheduler(
      now: { now.withLock { $0 } }, after: { seconds, body in waiting.withLock { $0.append((seconds, body)) } })
    func wake(after seconds: Double) {
      now.withLock { $0 += .seconds(seconds) }
      let bodies = waiting.withLock { waiting in
        defer { waiting = [] }
        return waiting
      }
      for body in bodies { body.body() }
    }
    let count = Atomic(0)
    for sleep in [0.0, 1, 2, 50] {
      count.store(0, ordering: .relaxed)
      scheduler.schedule(afterSeconds: 10) { count.wrappingAdd(1, ordering: .relaxed) }
      for _ in 0..<5 { wake(after: SystemScheduler.step) }
      #expect(count.load(ordering: .relaxed) == 0)
      // Its timer has a second left, and the machine sleeps meanwhile.
      wake(after: SystemScheduler.step + sleep)
      let steps = max(0, Int(4 - sleep))
      for _ in 0..<steps { wake(after: SystemScheduler.step) }
      if sleep > 4 { wake(after: 0) }
      #expect(count.load(ordering: .relaxed) == 1, "\(sleep)")
      #expect(waiting.withLock { $0.isEmpty })
    }
    scheduler.schedule(afterSeconds: 0) { count.wrappingAdd(1, ordering: .relaxed) }
    #expect(waiting.withLock { $0.map(\.seconds) } == [0])
    // What waits holds the scheduler, and that what waits.
    wake(after: 0)
    #expect(count.load(ordering: .relaxed) == 2)
  }
}
