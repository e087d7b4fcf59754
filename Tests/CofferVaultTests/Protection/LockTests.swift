import CofferFiles
import CofferSystem
import CofferTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// What a lock takes away, and what it must not.
@Suite struct LockTests {
  private let fixture: VaultFixture
  private let path: VaultPath

  init() throws {
    fixture = try VaultFixture()
    path = try VaultPath("file")
  }

  private func unlock(_ vault: Vault) throws { try vault.unlock(passcode: VaultFixture.passcode()) }

  /// Runs what is scheduled when it is told to.
  private final class ManualScheduler: Scheduler {
    private let waiting = Mutex<[(seconds: Double, body: @Sendable () -> Void)]>([])

    func schedule(afterSeconds seconds: Double, _ body: @escaping @Sendable () -> Void) {
      waiting.withLock { $0.append((seconds, body)) }
    }

    /// Runs what waits at most so long.
    func run(upTo seconds: Double) {
      let ready = waiting.withLock { waiting in
        let ready = waiting.filter { $0.seconds <= seconds }
        waiting.removeAll { $0.seconds <= seconds }
        return ready
      }
      for entry in ready { entry.body() }
    }
  }

  @Test(arguments: [0, 1, 900, 2_000, 60_000, 600_000, 3_000_000], ProtectionClass.allCases)
  func `what was not yet stored survives a lock`(_ count: Int, _ protection: ProtectionClass) throws {
    let vault = try fixture.create()
    try vault.protect(.root, as: protection)
    var generator = SeededGenerator(seed: UInt64(count))
    var expected = generator.bytes(count)
    let file = try vault.createFile(at: path)
    try file.write(expected, at: 0)
    if count > 1 {
      // A part of a block, and behind it.
      expected.replaceSubrange((count / 2)..<(count / 2 + 1), with: [0x5a])
      try file.write([0x5a], at: UInt64(count / 2))
    }
    vault.lock(graceSeconds: 0)
    #expect(vault.isLocked)
    if protection == .complete {
      #expect(throws: VaultError.locked) { try file.read(1, at: 0) }
      #expect(throws: VaultError.locked) { try file.write([1], at: 0) }
      #expect(throws: VaultError.locked) { try file.truncate(to: 0) }
      #expect(throws: VaultError.locked) { try vault.snapshot(of: path) }
    } else if count > 0 {
      #expect(try file.read(count, at: 0) == expected)
    }
    #expect(try vault.attributes(at: path).byteCount == UInt64(count))
    try vault.commit()
    try unlock(vault)
    #expect(!vault.isLocked)
    #expect(try file.read(count + 1, at: 0) == expected)
    try file.write([1, 2, 3], at: UInt64(count))
    expected += [1, 2, 3]
    try file.close()
    vault.lock(graceSeconds: 0)
    try vault.close()
    let again = try fixture.open()
    #expect(try again.contents(of: path) == expected)
  }

  @Test func `open files can be finished until the grace period ends, and nothing new is opened`() throws {
    let scheduler = ManualScheduler()
    var options = VaultOptions()
    options.scheduler = scheduler
    let vault = try fixture.create(options: options)
    let events = Mutex<[VaultEvent]>([])
    let observation = vault.observe { event in events.withLock { $0.append(event) } }
    let file = try vault.createFile(at: path)
    try file.write([1, 2, 3], at: 0)
    vault.lock(graceSeconds: 10)
    #expect(events.withLock { $0 } == [.willBecomeUnavailable])
    #expect(throws: VaultError.locked) { try vault.open(path, .reading) }
    #expect(throws: VaultError.locked) { try vault.createFile(at: VaultPath("new")) }
    try file.write([4], at: 3)
    #expect(try file.read(9, at: 0) == [1, 2, 3, 4])
    scheduler.run(upTo: 10)
    #expect(throws: VaultError.locked) { try file.read(9, at: 0) }
    let locked: [VaultEvent] = [.willBecomeUnavailable, .isBecomingUnavailable, .didBecomeUnavailable]
    #expect(events.withLock { $0 } == locked)
    try unlock(vault)
    #expect(events.withLock { $0 } == locked + [.didBecomeAvailable])
    #expect(try file.read(9, at: 0) == [1, 2, 3, 4])
    withExtendedLifetime(observation) {}
  }

  /// Who has a file open may finish, also who has not begun.
  @Test(arguments: [900, 60_000], ProtectionClass.allCases)
  func `a file that was open and not read is read until the keys go, or behind a lock as its class has it`(
    _ count: Int, _ protection: ProtectionClass
  ) throws {
    let scheduler = ManualScheduler()
    var options = VaultOptions()
    options.scheduler = scheduler
    let vault = try fixture.create(options: options)
    try vault.protect(.root, as: protection)
    let bytes = [UInt8](repeating: 0x5a, count: count)
    let maker = try vault.createFile(at: path)
    try maker.write(bytes, at: 0)
    try maker.close()
    let other = try VaultPath("other")
    try vault.importFile(fixture.source(bytes), to: other)
    try vault.commit()

    let (early, late) = (try vault.open(path, .reading), try vault.open(other, .writing))
    vault.lock(graceSeconds: 10)
    #expect(try early.read(count + 1, at: 0) == bytes)
    scheduler.run(upTo: 10)
    #expect(vault.isLocked)
    if protection == .complete {
      #expect(throws: VaultError.locked) { try early.read(1, at: 0) }
      #expect(throws: VaultError.locked) { try late.read(1, at: 0) }
      #expect(throws: VaultError.locked) { try late.write([1], at: 0) }
    } else {
      #expect(try early.read(count + 1, at: 0) == bytes)
      #expect(try late.read(count + 1, at: 0) == bytes)
    }
    try unlock(vault)
    #expect(try early.read(count + 1, at: 0) == bytes)
    #expect(try late.read(count + 1, at: 0) == bytes)
    try late.write([1], at: 0)
    #expect(try late.read(1, at: 0) == [1])
    try early.close()
    try late.close()
    try vault.close()
  }

  @Test func `an unlock within the grace period keeps the keys, also when the period ends`() throws {
    let scheduler = ManualScheduler()
    var options = VaultOptions()
    options.scheduler = scheduler
    let vault = try fixture.create(options: options)
    let file = try vault.createFile(at: path)
    try file.write([1], at: 0)
    vault.lock(graceSeconds: 10)
    try unlock(vault)
    scheduler.run(upTo: 10)
    #expect(!vault.isLocked)
    #expect(try file.read(9, at: 0) == [1])
    // The earlier lock's end does not shorten this one's grace.
    vault.lock(graceSeconds: 20)
    scheduler.run(upTo: 10)
    #expect(try file.read(9, at: 0) == [1])
    vault.lock(graceSeconds: 0)
    #expect(throws: VaultError.locked) { try file.read(9, at: 0) }
  }

  @Test func `a wrong passcode does not unlock`() throws {
    let vault = try fixture.create()
    vault.lock(graceSeconds: 0)
    #expect(throws: VaultError.wrongPasscode) { try vault.unlock(passcode: VaultFixture.passcode("wrong")) }
    #expect(vault.isLocked)
  }

  @Test(arguments: [500, 100_000]) func `a snapshot waits out a lock`(_ count: Int) throws {
    let vault = try fixture.create()
    let bytes = [UInt8](repeating: 3, count: count)
    try vault.importFile(fixture.source(bytes), to: path)
    let snapshot = try vault.snapshot(of: path)
    let file = try vault.open(path, .writing)
    try file.write([9], at: 0)
    vault.lock(graceSeconds: 0)
    #expect(throws: VaultError.locked) { try snapshot.read(count, at: 0) }
    try unlock(vault)
    #expect(try snapshot.read(count, at: 0) == bytes)
    #expect(try file.read(1, at: 0) == [9])
  }

  @Test func `a lock that found nobody at a file leaves its key to who has opened it meanwhile`() throws {
    let vault = try fixture.create()
    try vault.protect(.root, as: .completeUnlessOpen)
    try vault.createFile(at: path).write([1, 2, 3], at: 0)
    try vault.commit()
    let file = try vault.open(path, .writing)
    vault.lock(graceSeconds: 0)
    let node = try #require(vault.files.node(vault.attributes(at: path).number))
    vault.files.dropKey(of: node)
    #expect(try file.read(3, at: 0) == [1, 2, 3])
    try file.write([4], at: 3)
    // The control: the key is gone when nobody has it open.
    try file.close()
    #expect(throws: VaultError.locked) { try vault.open(path, .reading) }
    try unlock(vault)
    #expect(try vault.contents(of: path) == [1, 2, 3, 4])
  }

  @Test func `an import that a lock overtakes leaves nothing, and one of another class goes on`() throws {
    let vault = try fixture.create()
    try vault.makeDirectory(at: VaultPath("open"))
    try vault.protect(VaultPath("open"), as: .completeUnlessOpen)
    let bytes = [UInt8](repeating: 1, count: 3 << 20)
    for (name, isRefused) in [("file", true), ("open/file", false)] {
      let isLocked = Atomic(false)
      let control = TransferControl(
        progress: { _ in
          if !isLocked.exchange(true, ordering: .relaxed) { vault.lock(graceSeconds: 0) }
        }, isCancelled: { false })
      let result = Result { try vault.importFile(fixture.source(bytes), to: VaultPath(name), control: control) }
      if isRefused {
        #expect(throws: VaultError.locked) { try result.get() }
      } else {
        #expect(throws: Never.self) { try result.get() }
      }
      try unlock(vault)
    }
    #expect(throws: VaultError.notFound) { try vault.attributes(at: VaultPath("file")) }
    #expect(try vault.contents(of: VaultPath("open/file")) == bytes)
    try vault.commit()
    #expect(try TamperTests.objects(fixture.vaultPath).count == 1)
  }

  @Test func `a deposit becomes complete with the next unlock, also after a crash`() throws {
    let vault = try fixture.create()
    vault.lock(graceSeconds: 0)
    for (name, count) in [("small", 500), ("large", 90_000)] {
      try vault.deposit(fixture.source([UInt8](repeating: 5, count: count), name: name), to: VaultPath(name))
      #expect(try vault.attributes(at: VaultPath(name)).protection == .completeUnlessOpen)
      #expect(throws: VaultError.locked) { try vault.open(VaultPath(name), .reading) }
    }
    #expect(throws: VaultError.exists) {
      try vault.deposit(fixture.source([1], name: "third"), to: VaultPath("small"))
    }
    try unlock(vault)
    #expect(try vault.attributes(at: VaultPath("small")).protection == .complete)
    #expect(try vault.contents(of: VaultPath("large")) == [UInt8](repeating: 5, count: 90_000))
    // Unlocked, it is an import.
    try vault.deposit(fixture.source([1], name: "fourth"), to: VaultPath("fourth"))
    #expect(try vault.attributes(at: VaultPath("fourth")).protection == .complete)
    vault.lock(graceSeconds: 0)
    try vault.deposit(fixture.source([2], name: "fifth"), to: VaultPath("fifth"))
    try vault.close()
    let again = try fixture.open()
    #expect(try again.attributes(at: VaultPath("fifth")).protection == .complete)
    vault.lock(graceSeconds: 0)
    #expect(try again.contents(of: VaultPath("fifth")) == [2])
    #expect(try again.verify(isDeep: true).damages.isEmpty)
  }

  @Test(arguments: [0, 500, 3_000_000]) func `a deposit that an unlock overtakes is complete at once`(_ count: Int)
    throws
  {
    let vault = try fixture.create()
    let keys = try Vault.unlocked(
      in: vault.folder, id: vault.id, keyStore: fixture.keyStore, time: SystemTime(), passcode: VaultFixture.passcode()
    ).keys
    let bytes = [UInt8](repeating: 5, count: count)
    for isLockedAgain in [false, true] {
      let path = try VaultPath("file \(isLockedAgain)")
      let steps = Atomic(0)
      let control = TransferControl(
        progress: { _ in
          guard steps.wrappingAdd(1, ordering: .relaxed).newValue == 1 else { return }
          vault.takeBack(keys)
          if isLockedAgain { vault.lock(graceSeconds: 0) }
        }, isCancelled: { false })
      vault.lock(graceSeconds: 0)
      let attributes = try vault.deposit(fixture.source(bytes), to: path, control: control)
      let expected: ProtectionClass = isLockedAgain ? .completeUnlessOpen : .complete
      #expect(attributes.protection == expected)
      #expect(try vault.attributes(at: path).protection == expected)
      #expect(try vault.look { try $0.deposits() }.count == (isLockedAgain ? 1 : 0))
      vault.takeBack(keys)
      #expect(try vault.attributes(at: path).protection == .complete)
      #expect(try vault.look { try $0.deposits() }.isEmpty)
      #expect(try vault.contents(of: path) == bytes)
      vault.lock(graceSeconds: 0)
      #expect(throws: VaultError.locked) { try vault.open(path, .reading) }
    }
    vault.takeBack(keys)
    try vault.close()
    #expect(try fixture.open().verify(isDeep: true).damages.isEmpty)
  }

  @Test func `what finds no room when the vault is locked waits in memory without plaintext`() throws {
    let plan = CallLog()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    var bytes = [UInt8](repeating: 1, count: 700_000)
    try vault.importFile(fixture.source(bytes), to: path)
    let file = try vault.open(path, .writing)
    for offset in stride(from: 5, to: 600_000, by: 70_000) {
      try file.write([UInt8(truncatingIfNeeded: offset)], at: UInt64(offset))
      bytes[offset] = UInt8(truncatingIfNeeded: offset)
    }
    plan.fail(.write, times: 1_000_000)
    vault.lock(graceSeconds: 0)
    #expect(throws: VaultError.locked) { try file.read(1, at: 0) }
    plan.fail(.write, times: 0)
    try unlock(vault)
    #expect(try file.read(700_000, at: 0) == bytes)
    vault.lock(graceSeconds: 0)
    try vault.close()
    #expect(try fixture.open().contents(of: path) == bytes)
  }

  /// It may be the very file that is being joined: whoever waits for it waits for itself.
  @Test(.timeLimit(.minutes(10)))
  func `who commits in the midst of joining a file takes no key away that somebody uses`() throws {
    let plan = CallLog()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    vault.commits.startThread = { _ in throw SystemError(code: EAGAIN, call: "pthread_create") }
    try vault.protect(.root, as: .completeUnlessOpen)
    var bytes = [UInt8](repeating: 1, count: 700_000)
    let file = try vault.createFile(at: path)
    try file.write(bytes, at: 0)
    try vault.commit()
    vault.lock(graceSeconds: 0)
    // Joined, and not committed; then closed with something that cannot join.
    try file.write([2], at: 10)
    let number = try vault.attributes(at: path).number
    try vault.joinContent(of: number)
    try file.write([3], at: 20)
    plan.fail(.write, times: 1_000_000)
    #expect(throws: VaultError.self) { try file.close() }
    plan.fail(.write, times: 0)
    // So much waits that the file's joining needs a commit before it.
    while !vault.index.read({ $0.isFull(operationLimit: vault.room.operationLimit) }) {
      try vault.change { session in try session.store(session.inode(number)) }
    }
    try vault.commit()
    #expect(vault.files.node(number)?.cipher == nil)
    #expect(throws: VaultError.locked) { try vault.open(path, .reading) }
    try unlock(vault)
    (bytes[10], bytes[20]) = (2, 3)
    #expect(try vault.contents(of: path) == bytes)
  }

  /// Behind the unlock it is there before anybody reads: whoever copies asks first what is data, and who closes stores.
  @Test(arguments: [30_000, 3_000_000], [VaultEnd.asked, .closed])
  func `what found no room is data behind the unlock, and is stored`(_ count: Int, _ end: VaultEnd) throws {
    let plan = CallLog()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    let file = try vault.createFile(at: path)
    let bytes = [UInt8](repeating: 7, count: 1000)
    // Content that has no object yet, or a hole with a part of a block behind it.
    let isSparse = count > 1_000_000
    if isSparse { try file.truncate(to: UInt64(count)) }
    let start = isSparse ? count - bytes.count : 0
    try file.write([UInt8](repeating: 7, count: count - start), at: UInt64(start))
    let call: SystemCall = isSparse ? .write : .open
    plan.fail(call, times: 1_000_000)
    vault.lock(graceSeconds: 0)
    plan.fail(call, times: 0)
    try unlock(vault)
    if end == .asked {
      let first = try #require(try file.nextData(from: 0))
      #expect(first <= UInt64(count - bytes.count) && (first > 0) == isSparse)
    }
    try file.close()
    try vault.close()
    let again = try fixture.open()
    #expect(try again.contents(of: path).suffix(1000) == bytes[...])
    #expect(try again.contents(of: path).count == count)
    try again.close()
  }

  enum VaultEnd: Sendable { case asked, closed }

  @Test func `threads that read and write see a lock, never something else`() throws {
    let vault = try fixture.create()
    let size = 200_000
    try vault.importFile(fixture.source([UInt8](repeating: 1, count: size)), to: path)
    let isDone = Atomic(false)
    let outcomes = Mutex<(done: Int, refused: Int)>((0, 0))
    let workers = (0..<4).map { number in
      Thread {
        var generator = SeededGenerator(seed: UInt64(number))
        while !isDone.load(ordering: .relaxed) {
          do {
            let file = try vault.open(self.path, .writing)
            let offset = UInt64.random(in: 0..<UInt64(size - 4000), using: &generator)
            if number == 0 {
              try file.write([UInt8](repeating: 1, count: 4000), at: offset)
            } else {
              let found = try file.read(4000, at: offset)
              if found != [UInt8](repeating: 1, count: 4000) { Issue.record("other bytes than were written") }
            }
            outcomes.withLock { $0.done += 1 }
          } catch {
            if error as? VaultError != .locked { Issue.record("\(error)") }
            outcomes.withLock { $0.refused += 1 }
          }
        }
      }
    }
    for worker in workers { worker.start() }
    for _ in 0..<20 {
      while outcomes.withLock({ $0.done < 50 }) { Thread.yieldToOthers() }
      vault.lock(graceSeconds: 0)
      outcomes.withLock { $0.refused = 0 }
      while outcomes.withLock({ $0.refused < 4 }) { Thread.yieldToOthers() }
      try unlock(vault)
      outcomes.withLock { $0.done = 0 }
    }
    isDone.store(true, ordering: .relaxed)
    for worker in workers { while !worker.isFinished { Thread.yieldToOthers() } }
    #expect(try vault.contents(of: path) == [UInt8](repeating: 1, count: size))
  }
}

extension Thread {
  fileprivate static func yieldToOthers() { sched_yield() }
}
