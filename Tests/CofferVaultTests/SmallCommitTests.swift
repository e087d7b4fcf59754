import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// Small commits beside whoever has the index's connection.
@Suite(.timeLimit(.minutes(10))) struct SmallCommitTests {
  /// Runs something once, when the journal is about to be synced: by a commit that has no content. Then that and the next syncs fail
  /// where it is told so.
  private final class AtSync: FaultPlan {
    private let state = Mutex<(body: (@Sendable () -> Void)?, failures: Int)>((nil, 0))

    func set(failures: Int = 0, _ body: @escaping @Sendable () -> Void) { state.withLock { $0 = (body, failures) } }

    func willCall(_ call: SystemCall) throws(SystemError) {
      guard call == .sync else { return }
      let (body, fails) = state.withLock { state in
        defer { state = (nil, max(0, state.failures - 1)) }
        return (state.body, state.failures > 0)
      }
      body?()
      if fails { throw SystemError(code: EIO, call: call.rawValue) }
    }
  }

  /// Files whose rows are in SQLite alone.
  private static func storedFiles(_ vault: Vault, _ count: Int) throws -> [InodeNumber] {
    vault.index.tables.changeRules { $0.commitsBeforeJournal = 0 }
    let numbers = try (0..<count).map { number in
      let path = try VaultPath("file-\(number)")
      try vault.createFile(at: path).close()
      return try vault.attributes(at: path).number
    }
    try vault.commit()
    try vault.index.forgetOpened()
    return numbers
  }

  private static func permissions(_ vault: Vault, _ number: InodeNumber) throws -> UInt16 {
    try vault.index.read { try $0.inode(number).permissions }
  }

  private static func room(_ vault: Vault) -> Int { vault.index.tables.journal?.room ?? 0 }

  @Test func `who needs what is stored does not wait for the journal's disk`() throws {
    let fixture = try VaultFixture()
    let plan = AtSync()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    let numbers = try Self.storedFiles(vault, 100)
    // Makes the journal.
    try vault.setAttributes(AttributeChanges(permissions: 0o711), of: numbers[0])
    try vault.commit()
    for changed in 0..<3 {
      try vault.setAttributes(AttributeChanges(permissions: 0o700), of: numbers[changed])
      let found = Found()
      plan.set {
        // A row that nobody has asked for, nor for one near it, with which it would have been read.
        let ended = startThread { found.set(try? Self.permissions(vault, numbers[30 + 25 * changed])) }
        found.isInTime.store(ended.wait(timeout: .now() + 60) == .success, ordering: .relaxed)
      }
      let room = Self.room(vault)
      try vault.commit()
      #expect(Self.room(vault) < room)
      let isInTime = found.isInTime.load(ordering: .relaxed)
      #expect(isInTime)
      #expect(found.value == 0o600)
    }
    try fixture.expectSameAfterCrash(vault)
    try vault.close()
  }

  private final class Found: Sendable {
    let isInTime = Atomic(false)
    private let found = Mutex<UInt16?>(nil)
    var value: UInt16? { found.withLock { $0 } }
    func set(_ value: UInt16?) { found.withLock { $0 = value } }
  }

  /// A reader finds the bucket of a row as it was when it asked; the row changes before it has told what it found.
  @Test(arguments: [0, RootRecord.bucketLimit])
  func `what a commit changes while it is read is read again`(_ heldBucketLimit: Int) throws {
    let fixture = try VaultFixture()
    let plan = AtSync()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    vault.index.read { $0.heldBucketLimit = heldBucketLimit }
    // Neighbours have one bucket.
    let numbers = try Self.storedFiles(vault, 3)
    let buckets = Dictionary(grouping: numbers) { number in vault.index.read { $0.rowKeys.inode(number).bucket } }
    let (bucket, pair) = try #require(buckets.first { $0.value.count > 1 })
    try vault.setAttributes(AttributeChanges(permissions: 0o711), of: pair[0])

    // The commit knows what it needs, and is about to be stored.
    let isBeforeSync = DispatchSemaphore(value: 0)
    let mayGoOn = DispatchSemaphore(value: 0)
    plan.set {
      isBeforeSync.signal()
      _ = mayGoOn.wait(timeout: .now() + 60)
    }
    let committed = startThread { #expect(throws: Never.self) { try vault.commit() } }
    try #require(isBeforeSync.wait(timeout: .now() + 60) == .success)
    // As where many others have been read since.
    vault.index.read { $0.stored.forgetVerified { _ in false } }
    var lookCount = 0
    vault.index.willAnswer = { reads, _ in
      guard reads.contains(.bucket(bucket)) else { return }
      lookCount += 1
      guard lookCount == 1 else { return }
      mayGoOn.signal()
      #expect(committed.wait(timeout: .now() + 60) == .success)
    }
    #expect(try Self.permissions(vault, pair[1]) == 0o600)
    vault.index.willAnswer = { _, _ in }
    #expect(lookCount == 2)
    // What is remembered of the bucket is what the commit left.
    #expect(try vault.index.read { try $0.verifiedRowCount(of: bucket) } > 1)
    try vault.setAttributes(AttributeChanges(permissions: 0o722), of: pair[1])
    try vault.commit()
    // Forgets records, and not what is known of buckets.
    vault.index.remember(nil)
    let found = try pair.prefix(2).map { try Self.permissions(vault, $0) }
    #expect(found == [0o711, 0o722])
    #expect(try vault.verify(isDeep: false).isClean)
    try fixture.expectSameAfterCrash(vault)
    try vault.close()
  }

  /// - Parameter commitsBeforeJournal: as of ``IndexTables``: none, or so many that all commits go to SQLite.
  @Test(arguments: [0, .max])
  func `a commit does not wait for a backup, which has nothing of it`(_ commitsBeforeJournal: Int) throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let numbers = try Self.storedFiles(vault, 100)
    vault.index.tables.changeRules { $0.commitsBeforeJournal = commitsBeforeJournal }
    try vault.setAttributes(AttributeChanges(permissions: 0o711), of: numbers[7])
    try vault.commit()
    // So that its change needs nothing from SQLite.
    _ = try Self.permissions(vault, numbers[8])
    let before = vault.committedRoot
    let isFirst = Atomic(true)
    let hasCommitted = Atomic(false)
    try vault.backup(
      to: fixture.folder("backup"),
      control: TransferControl(isCancelled: {
        guard isFirst.exchange(false, ordering: .relaxed) else { return false }
        let ended = startThread {
          _ = try? vault.setAttributes(AttributeChanges(permissions: 0o722), of: numbers[8])
          _ = try? vault.commit()
        }
        hasCommitted.store(ended.wait(timeout: .now() + 60) == .success, ordering: .relaxed)
        return false
      }))
    let isCommitted = hasCommitted.load(ordering: .relaxed)
    #expect(isCommitted)
    #expect(vault.committedRoot.generation == before.generation + 1)
    try fixture.expectSameAfterCrash(vault)
    let copy = try Vault.open(
      at: fixture.folder("backup"), keyStore: fixture.keyStore, passcode: { VaultFixture.passcode() })
    #expect(copy.committedRoot.commit == before.commit)
    #expect(try copy.verify(isDeep: true).isClean)
    try copy.close()
    try vault.close()
  }

  @Test func `what is read is the journal as it was when its reader asked`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let number = try Self.storedFiles(vault, 1)[0]
    try vault.setAttributes(AttributeChanges(permissions: 0o711), of: number)
    try vault.commit()
    let read = vault.index.read { StoredRead.value(RowID(kind: .inode, key: $0.rowKeys.inode(number))) }
    let expected = try #require(vault.index.read { $0.expectations(of: [read]) }.first).expected
    let tables = vault.index.tables
    try tables.using { reader in
      let journal = tables.lock.withLock { tables.beginReading() }
      let ended = startThread {
        _ = try? vault.setAttributes(AttributeChanges(permissions: 0o722), of: number)
        _ = try? vault.commit()
      }
      try #require(ended.wait(timeout: .now() + 60) == .success)
      #expect(throws: Never.self) { try reader.answer(read, expected, journal.rows) }
      tables.lock.withLock { tables.endReading(journal) }
      let now = tables.lock.withLock { tables.beginReading() }
      #expect(throws: (any Error).self) { try reader.answer(read, expected, now.rows) }
      tables.lock.withLock { tables.endReading(now) }
    }
    #expect(try Self.permissions(vault, number) == 0o722)
    try vault.close()
  }

  enum Meanwhile: CaseIterable, Sendable { case forgetting, closing, backingUp }

  /// What has the connection waits for a commit, and the commit for it, and neither for ever: also where the journal cannot be synced,
  /// so that the commit needs the connection.
  @Test(arguments: Meanwhile.allCases, [0, 1, 2])
  func `what goes to SQLite beside a small commit loses nothing of it`(_ meanwhile: Meanwhile, _ failures: Int) throws {
    let fixture = try VaultFixture()
    let plan = AtSync()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    let numbers = try Self.storedFiles(vault, 3)
    try vault.setAttributes(AttributeChanges(permissions: 0o711), of: numbers[0])
    try vault.commit()
    try vault.setAttributes(AttributeChanges(permissions: 0o722), of: numbers[1])
    let ended = DispatchSemaphore(value: 0)
    plan.set(failures: failures) {
      let begun = DispatchSemaphore(value: 0)
      _ = startThread {
        begun.signal()
        switch meanwhile {
        case .forgetting: try? vault.index.forgetOpened()
        case .closing: try? vault.index.close()
        case .backingUp: _ = try? vault.index.copy(to: fixture.folder("copy")) { false }
        }
        ended.signal()
      }
      _ = begun.wait(timeout: .now() + 60)
      // Until it has the connection, or has had it.
      for _ in 0..<10_000 where !vault.index.tables.isInUse { sched_yield() }
    }
    let committed = startThread {
      // Of two failures the second is that of taking the entry back.
      let outcome = Result { try vault.commit() }
      if failures < 2 {
        #expect(throws: Never.self) { try outcome.get() }
      } else {
        #expect(throws: (any Error).self) { try outcome.get() }
      }
    }
    try #require(committed.wait(timeout: .now() + 60) == .success)
    try #require(ended.wait(timeout: .now() + 60) == .success)
    try? vault.close()
    let opened = try fixture.open()
    #expect(try Self.permissions(opened, numbers[0]) == 0o711)
    let second = try Self.permissions(opened, numbers[1])
    #expect(second == 0o722 || (failures == 2 && second == 0o600))
    #expect(try opened.verify(isDeep: true).isClean)
    try opened.close()
  }

  private final class Written: Sendable {
    /// What each file has at least, and has at most.
    let values: Mutex<[(least: UInt16, most: UInt16)]>
    let isComplete = Atomic(false)

    init(count: Int) { values = Mutex(Array(repeating: (0o600, 0o600), count: count)) }
  }

  /// Small commits, readers who find nothing in memory, and what is brought to SQLite in between.
  ///
  /// - Parameter commitsBeforeJournal: as of ``IndexTables``: none, or so many that all commits go to SQLite.
  @Test(arguments: [0, .max])
  func `readers find every commit, wherever it is`(_ commitsBeforeJournal: Int) throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let numbers = try Self.storedFiles(vault, 48)
    vault.index.tables.changeRules { $0.commitsBeforeJournal = commitsBeforeJournal }
    let written = Written(count: numbers.count)
    let begun = DispatchSemaphore(value: 0)
    let ended = (0..<3).map { reader in
      startThread {
        begun.signal()
        var round = reader
        repeat {
          round += 1
          if round.isMultiple(of: 3) { vault.index.read { $0.forgetOpened() } }
          if reader == 0, round.isMultiple(of: 50) { #expect(throws: Never.self) { try vault.index.forgetOpened() } }
          let place = (round * 5 + reader) % numbers.count
          let least = written.values.withLock { $0[place].least }
          do {
            let found = try Self.permissions(vault, numbers[place])
            let most = written.values.withLock { $0[place].most }
            #expect(least <= found && found <= most)
          } catch { Issue.record(error) }
        } while !written.isComplete.load(ordering: .relaxed)
      }
    }
    defer { written.isComplete.store(true, ordering: .relaxed) }
    for _ in ended { #expect(begun.wait(timeout: .now() + 60) == .success) }
    for round in 0..<min(3000, Effort.scaled(600)) {
      let place = round * 7 % numbers.count
      let value = UInt16(0o600 + round)
      written.values.withLock { $0[place].most = value }
      try vault.setAttributes(AttributeChanges(permissions: value), of: numbers[place])
      written.values.withLock { $0[place].least = value }
      try vault.commit()
    }
    written.isComplete.store(true, ordering: .relaxed)
    for ended in ended { try #require(ended.wait(timeout: .now() + 60) == .success) }
    #expect(try vault.verify(isDeep: true).isClean)
    try fixture.expectSameAfterCrash(vault)
    try vault.close()
  }
}
