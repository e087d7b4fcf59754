import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import GRDB
import Synchronization
import Testing

@testable import CofferVault

/// Who reads what is stored, and who copies it, beside who stores something.
@Suite(.timeLimit(.minutes(10))) struct ReadingBesideTests {
  // MARK: In the midst of a commit

  private static let count = 400

  /// With files of which every second one has been changed since the last commit, and nothing of the others in memory.
  ///
  /// - Parameter isJournaled: the journal has some rows, of both kinds.
  private static func changedVault(
    _ fixture: VaultFixture, isJournaled: Bool = false
  ) throws -> (vault: Vault, numbers: [InodeNumber]) {
    let vault = try fixture.create()
    // So that pages say what buckets must hold, too.
    vault.index.read { $0.heldBucketLimit = 0 }
    // Straight to SQLite, however small they are.
    vault.index.tables.changeRules { $0.commitsBeforeJournal = .max }
    var numbers: [InodeNumber] = []
    for number in 0..<count {
      let file = try vault.createFile(at: VaultPath("file\(number)"))
      // Too much for the journal, all together.
      try file.write([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 3000 + number), at: 0)
      try file.close()
      numbers.append(try vault.attributes(at: VaultPath("file\(number)")).number)
    }
    // Their names have buckets of their own, so that not all can be in pages that the files' rows make known.
    for number in 0..<16 {
      try vault.makeDirectory(at: VaultPath("folder\(number)"))
      try vault.createFile(at: VaultPath("folder\(number)/file")).close()
    }
    try vault.commit()
    try vault.index.forgetOpened()
    if isJournaled {
      vault.index.tables.changeRules { $0.commitsBeforeJournal = 1 }
      for number in 0..<20 { try vault.setAttributes(AttributeChanges(permissions: 0o600), of: numbers[number]) }
      try vault.commit()
      #expect(
        try vault.index.tables.using { _ in try #require(vault.index.tables.journal).room } < CommitJournal.byteCount
          / 2
          + CommitJournal.byteCount / 4)
    }
    // In an order in which nobody is given those between.
    for first in stride(from: 0, to: 40, by: 2) {
      for number in stride(from: first, to: count, by: 40) {
        try vault.setAttributes(AttributeChanges(permissions: 0o700), of: numbers[number])
      }
    }
    return (vault, numbers)
  }

  private static func reads(_ vault: Vault, _ numbers: [InodeNumber]) -> [StoredRead] {
    let rows = vault.index.read { session in numbers.map { RowID(kind: .inode, key: session.rowKeys.inode($0)) } }
    return rows.map { .value($0) } + (0..<VaultFormat.bucketCount / 64).map { .page($0) }
  }

  @Test(arguments: [false, true])
  func `who needs what is stored has it in the midst of a commit`(isJournaled: Bool) throws {
    let fixture = try VaultFixture()
    let (vault, numbers) = try Self.changedVault(fixture, isJournaled: isJournaled)
    let tables = vault.index.tables
    let size = Shared<UInt64?>(nil)
    var stepCount = 0
    tables.changeRules {
      $0.willCommit = {
        stepCount += 1
        let ended = startThread { size.set(try? vault.index.read { try $0.inode(numbers[7]).byteCount }) }
        #expect(Patience.wait(for: ended))
        #expect(size.now == 3007)
      }
    }
    try vault.commit()
    tables.changeRules { $0.willCommit = {} }
    #expect(stepCount == 1)
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  /// Up to the end of its transaction everything is as the last commit left it; and then what it leaves is.
  @Test(arguments: [false, true])
  func `who reads beside a commit finds the last one's rows, or is not told anything`(isJournaled: Bool) throws {
    let fixture = try VaultFixture()
    let (vault, numbers) = try Self.changedVault(fixture, isJournaled: isJournaled)
    let tables = vault.index.tables
    // Known, so that the session says what must be found.
    for number in numbers { _ = try vault.attributes(of: number) }
    let expectations = vault.index.read { [reads = Self.reads(vault, numbers)] in $0.expectations(of: reads) }
    let pageCount = expectations.count { if case .page = $0.read { true } else { false } }
    #expect(pageCount > 0)
    #expect(expectations.count - pageCount == numbers.count)
    tables.readers.want()
    let journal = tables.lock.withLock { tables.beginReading() }
    func failureCount() -> Int {
      var count = 0
      let hasRead = tables.readers.use { reader in
        count = expectations.count { (try? reader.answer($0.read, $0.expected, journal.rows)) == nil }
      }
      #expect(hasRead)
      return count
    }
    var counts: [Int] = []
    tables.changeRules {
      $0.willCommit = { counts.append(failureCount()) }
      $0.willPublish = { counts.append(failureCount()) }
    }
    try vault.commit()
    tables.changeRules { ($0.willCommit, $0.willPublish) = ({}, {}) }
    tables.lock.withLock { tables.endReading(journal) }
    try #require(counts.count == 2)
    #expect(counts[0] == 0)
    // The changed ones, but for those that stood in the journal: these are as they were when it was asked for.
    #expect(counts[1] >= numbers.count / 2 - (isJournaled ? 20 : 0))
    #expect(counts[1] <= numbers.count / 2 + pageCount)
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  /// Who asks between the end of a transaction and its being known finds rows that nobody expects yet.
  @Test func `what does not fit beside a commit is asked for again, and who stores is not waited for`() throws {
    let fixture = try VaultFixture()
    let (vault, numbers) = try Self.changedVault(fixture)
    let tables = vault.index.tables
    tables.readers.want()
    // A neighbour that is not changed, in the bucket of one that is.
    let buckets = numbers.map { number in vault.index.read { $0.rowKeys.inode(number).bucket } }
    let pair = try #require(
      numbers.indices.dropFirst().first { !$0.isMultiple(of: 2) && buckets[$0] == buckets[$0 - 1] })
    tables.changeRules {
      $0.willCommit = {
        // As where many others have been read since the commit looked.
        vault.index.read { session in
          session.remember(nil)
          session.stored.forgetVerified { _ in false }
        }
      }
    }
    let looks = Shared<[Bool]>([])
    let (hasLooked, isKnown) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let size = Shared<Result<UInt64, any Error>?>(nil)
    var ended: DispatchSemaphore?
    tables.changeRules {
      $0.willPublish = {
        vault.index.willAnswer = { _, isAlone in
          looks.change { $0.append(isAlone) }
          hasLooked.signal()
          if looks.now.count == 2 { #expect(Patience.wait(for: isKnown)) }
        }
        ended = startThread {
          size.set(Result { try vault.index.read { try $0.inode(numbers[pair]).byteCount } })
        }
        // It finds something else than it expects.
        #expect(Patience.wait(for: hasLooked))
      }
      $0.didPublish = {
        isKnown.signal()
        #expect(ended.map { Patience.wait(for: $0) } ?? false)
      }
    }
    try vault.commit()
    tables.changeRules { ($0.willCommit, $0.willPublish, $0.didPublish) = ({}, {}, {}) }
    vault.index.willAnswer = { _, _ in }
    #expect(looks.now.count > 1 && !looks.now.contains(true))
    #expect(try #require(size.now).get() == UInt64(3000 + pair))
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  @Test func `who waits for a commit goes on once it is stored, beside what is done to the log`() throws {
    let fixture = try VaultFixture()
    let (vault, _) = try Self.changedVault(fixture)
    let tables = vault.index.tables
    var ended: DispatchSemaphore?
    var hasEnded = false
    tables.changeRules {
      $0.willCommit = { ended = startThread { #expect(throws: Never.self) { try vault.commit() } } }
      $0.didPublish = { hasEnded = ended.map { Patience.wait(for: $0) } ?? false }
    }
    try vault.commit()
    tables.changeRules { ($0.willCommit, $0.didPublish) = ({}, {}) }
    #expect(hasEnded)
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  @Test func `where little room is left nobody reads while something is stored`() throws {
    let fixture = try VaultFixture()
    let (vault, _) = try Self.changedVault(fixture)
    let tables = vault.index.tables
    tables.readers.want()
    var hasRead: [Bool] = []
    tables.changeRules { $0.willCommit = { hasRead.append(tables.readers.use { _ in }) } }
    // What follows one with little room is still alone.
    for isShort in [true, true, false, false] {
      tables.keepsLogShort.store(isShort, ordering: .relaxed)
      try vault.index.perform { session in
        var root = try session.inode(.rootFolder)
        root.permissions ^= 0o011
        try session.store(root)
      }
      _ = try vault.index.commit(prepare: {})
    }
    tables.changeRules { $0.willCommit = {} }
    #expect(hasRead == [false, false, false, true])
    try vault.close()
  }

  /// Else the log would grow for as long as somebody always reads.
  @Test func `a log that has become too long waits for who reads there, and begins anew`() throws {
    let fixture = try VaultFixture()
    let (vault, numbers) = try Self.changedVault(fixture)
    let tables = vault.index.tables
    tables.changeRules { $0.mostLogPages = 1100 }
    tables.readers.want()
    let lent = try #require(tables.readers.lend())
    _ = try lent.rows.begin()
    let isOver = Atomic(false)
    let committing = startThread {
      var round = 0
      repeat {
        round += 1
        do {
          for number in numbers {
            let permissions = round.isMultiple(of: 2) ? UInt16(0o700) : 0o711
            try vault.setAttributes(AttributeChanges(permissions: permissions), of: number)
          }
          try vault.commit()
        } catch { Issue.record(error) }
      } while !isOver.load(ordering: .relaxed) && round < 1000
    }
    #expect(Patience.wait { tables.readers.mustEnd })
    isOver.store(true, ordering: .relaxed)
    lent.rows.end()
    tables.readers.end(lent)
    #expect(Patience.wait(for: committing))
    let longest = try FileSystem().status(of: fixture.vaultPath + "/index.sqlite-wal")?.byteCount ?? .max
    #expect(longest < 2000 * UInt64(IndexDatabase.pageSize))
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  // MARK: Copies

  /// With so many rows that a copy has some steps, all of them in SQLite.
  private static func largeVault(_ fixture: VaultFixture) throws -> (vault: Vault, numbers: [InodeNumber]) {
    let vault = try fixture.create()
    vault.index.tables.changeRules { $0.commitsBeforeJournal = .max }
    let numbers = try (0..<2 * count).map { number in
      let file = try vault.createFile(at: VaultPath("file\(number)"))
      try file.write([UInt8](repeating: 7, count: 3000 + number), at: 0)
      try file.close()
      return try vault.attributes(at: VaultPath("file\(number)")).number
    }
    try vault.commit()
    try vault.index.forgetOpened()
    try #require(vault.index.tables.hasAmpleRoom, "these tests need a disk with more than 8 GiB of room")
    return (vault, numbers)
  }

  private static func openedBackup(_ fixture: VaultFixture) throws -> Vault {
    try Vault.open(
      at: fixture.folder("backup"), keyStore: fixture.keyStore, passcode: { VaultFixture.passcode() },
      options: TestVault.options)
  }

  @Test func `who needs what is stored has it in the midst of a copy`() throws {
    let fixture = try VaultFixture()
    let (vault, numbers) = try Self.largeVault(fixture)
    let size = Shared<UInt64?>(nil)
    var stepCount = 0
    _ = try vault.index.copy(to: fixture.folder("copy")) {
      stepCount += 1
      if stepCount == 1 {
        let ended = startThread { size.set(try? vault.index.read { try $0.inode(numbers[9]).byteCount }) }
        #expect(Patience.wait(for: ended))
      }
      return false
    }
    #expect(stepCount > 1)
    #expect(size.now == 3009)
    try vault.close()
  }

  /// Each step of the copy comes after another commit, which changes rows everywhere.
  ///
  /// - Parameter isJournaled: the first of these commits is the first of an opening that has found a journal: its salt is none that the
  ///   copy has, which has the journal's rows.
  @Test(arguments: [false, true])
  func `a backup is the vault as it was when it began, whatever is committed meanwhile`(isJournaled: Bool) throws {
    let fixture = try VaultFixture()
    let (first, numbers) = try Self.largeVault(fixture)
    var vault = first
    let last = numbers.count - 1
    if isJournaled {
      vault.index.tables.changeRules { $0.commitsBeforeJournal = 1 }
      try vault.setAttributes(AttributeChanges(permissions: 0o640), of: numbers[last])
      try vault.commit()
      try fixture.copyAsAfterCrash()
      try vault.close()
      vault = try fixture.openAfterCrash()
      vault.index.tables.changeRules { $0.commitsBeforeJournal = .max }
      let tables = vault.index.tables
      let journal = tables.lock.withLock { tables.beginReading() }
      #expect(journal.rows.root != nil)
      tables.lock.withLock { tables.endReading(journal) }
    }
    let before = vault.committedRoot
    let stepCount = Shared(0)
    let opened = vault
    try vault.backup(
      to: fixture.folder("backup"),
      control: TransferControl(isCancelled: {
        stepCount.change { $0 += 1 }
        guard stepCount.now <= 4 else { return false }
        let ended = startThread {
          do {
            for number in numbers[..<last] where number.value % 4 == UInt64(stepCount.now) % 4 {
              try opened.setAttributes(AttributeChanges(permissions: 0o711), of: number)
            }
            try opened.commit()
          } catch { Issue.record(error) }
        }
        #expect(Patience.wait(for: ended))
        return false
      }))
    #expect(stepCount.now > 4)
    #expect(vault.committedRoot.generation >= before.generation + 4)
    let copy = try Self.openedBackup(fixture)
    #expect(copy.committedRoot.commit == before.commit)
    #expect(try Set(numbers[..<last].map { try copy.attributes(of: $0).permissions }) == [0o600])
    #expect(try copy.attributes(of: numbers[last]).permissions == (isJournaled ? 0o640 : 0o600))
    #expect(try copy.verify(isDeep: true).isClean)
    try copy.close()
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  /// A copy keeps the log from beginning anew, for which there must be room.
  @Test func `a backup begins anew where it is no longer alone in needing room`() throws {
    let fixture = try VaultFixture()
    let (vault, numbers) = try Self.largeVault(fixture)
    let stepCount = Shared(0)
    _ = try vault.index.copy(to: fixture.folder("whole")) {
      stepCount.change { $0 += 1 }
      return false
    }
    let count = stepCount.now
    #expect(count > 1)
    stepCount.set(0)
    let ended = Shared<DispatchSemaphore?>(nil)
    try vault.backup(
      to: fixture.folder("backup"),
      control: TransferControl(isCancelled: {
        stepCount.change { $0 += 1 }
        guard stepCount.now == 1 else { return false }
        ended.set(
          startThread {
            do {
              try vault.setAttributes(AttributeChanges(permissions: 0o711), of: numbers[3])
              try vault.commit()
            } catch { Issue.record(error) }
            let tables = vault.index.tables
            tables.using { _ in tables.emptyLog(growingBy: .max) }
          })
        #expect(Patience.wait { vault.index.tables.readers.mustEnd })
        return false
      }))
    try #require(Patience.wait(for: try #require(ended.now)))
    // The index's whole, and the first step before it; then the objects.
    #expect(stepCount.now > count)
    let copy = try Self.openedBackup(fixture)
    #expect(copy.committedRoot.commit == vault.committedRoot.commit)
    #expect(try copy.attributes(of: numbers[3]).permissions == 0o711)
    #expect(try copy.verify(isDeep: true).isClean)
    try copy.close()
    try vault.close()
  }

  @Test func `a copy that is given up, or whose vault is closed, keeps nobody waiting`() throws {
    let fixture = try VaultFixture()
    let (vault, _) = try Self.largeVault(fixture)
    let tables = vault.index.tables
    #expect(throws: VaultError.cancelled) { _ = try vault.index.copy(to: fixture.folder("first")) { true } }
    #expect(tables.readers.isUnused)
    let ended = Shared<DispatchSemaphore?>(nil)
    let stepCount = Shared(0)
    #expect(throws: VaultError.needsReopening) {
      _ = try vault.index.copy(to: fixture.folder("second")) {
        stepCount.change { $0 += 1 }
        if stepCount.now == 1 {
          ended.set(startThread { #expect(throws: Never.self) { try vault.close() } })
          #expect(Patience.wait { vault.index.tables.readers.mustEnd })
        }
        return false
      }
    }
    #expect(stepCount.now == 1)
    #expect(Patience.wait(for: try #require(ended.now)))
  }
}
