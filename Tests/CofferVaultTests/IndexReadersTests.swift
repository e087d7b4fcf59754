import CofferCrypto
import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import GRDB
import Synchronization
import Testing

@testable import CofferVault

/// Who reads what is stored, beside who stores something and beside each other.
@Suite(.timeLimit(.minutes(10))) struct IndexReadersTests {
  private final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    init(_ value: Value) { self.value = Mutex(value) }
    var now: Value { value.withLock { $0 } }
    func set(_ new: Value) { value.withLock { $0 = new } }
    func change(_ body: (inout Value) -> Void) { value.withLock { body(&$0) } }
  }

  private static func wait(for semaphore: DispatchSemaphore) -> Bool {
    semaphore.wait(timeout: .now() + 60) == .success
  }

  private static func wait(until condition: () -> Bool) -> Bool {
    let end = DispatchTime.now() + 60
    while !condition(), DispatchTime.now() < end { sched_yield() }
    return condition()
  }

  // MARK: Connections

  /// Opens readers of a vault's index, and counts them.
  private final class Openings: @unchecked Sendable {
    let path: String
    let fails = Atomic(false)
    let memories = Shared<[IndexDatabase.Memory]>([])

    init(_ fixture: VaultFixture) { path = fixture.vaultPath + "/" + VaultFormat.index }

    func readers(_ vault: Vault) -> IndexReaders {
      let (hasher, sealer) = (vault.index.tables.hasher, vault.index.tables.sealer)
      return IndexReaders { [self] memory in
        if fails.load(ordering: .relaxed) { throw VaultError.full }
        memories.change { $0.append(memory) }
        let queue = try IndexDatabase.openReader(at: path, memory)
        return IndexReaders.Reader(queue, try queue.inDatabase { try RowReader($0, hasher, sealer) })
      }
    }
  }

  @Test func `each who reads has a connection, and nobody before it is wanted or after it is closed`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let openings = Openings(fixture)
    let readers = openings.readers(vault)
    #expect(!readers.use { _ in })
    readers.forget(wanting: .ample)
    readers.want()
    #expect(readers.areWanted)
    var seen: Set<ObjectIdentifier> = []
    for _ in 0..<3 { #expect(readers.use { seen.insert(ObjectIdentifier($0)) }) }
    #expect(seen.count == 1)
    // One within the other, as on threads of their own.
    func nest(_ depth: Int) {
      let hasRead = readers.use { reader in
        seen.insert(ObjectIdentifier(reader))
        #expect(throws: Never.self) { try reader.root() }
        if depth > 1 { nest(depth - 1) }
      }
      #expect(hasRead)
    }
    nest(4)
    #expect(seen.count == 4)
    #expect(openings.memories.now == [.ample, .little, .little, .little])
    readers.forget(wanting: nil)
    #expect(!readers.areWanted && !readers.use { _ in })
    readers.want()
    nest(2)
    readers.shrinkMemory()
    nest(1)
    // They are the same.
    #expect(seen.count == 4 && readers.count == 4 && readers.isUnused)
    #expect(openings.memories.now.count == 4)
    readers.close()
    readers.want()
    #expect(readers.count == 0 && !readers.use { _ in })
    try vault.close()
  }

  @Test func `where none can be opened the next who reads tries again`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let openings = Openings(fixture)
    let readers = openings.readers(vault)
    readers.want()
    openings.fails.store(true, ordering: .relaxed)
    for _ in 0..<2 * IndexReaders.limit { #expect(!readers.use { _ in }) }
    openings.fails.store(false, ordering: .relaxed)
    #expect(readers.use { _ in })
    #expect(readers.count == 1)
    readers.close()
    try vault.close()
  }

  @Test func `more than there may be wait for the others`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let readers = Openings(fixture).readers(vault)
    readers.want()
    let using = DispatchSemaphore(value: 0)
    let mayEnd = DispatchSemaphore(value: 0)
    let all = (0..<IndexReaders.limit).map { _ in
      startThread {
        let hasRead = readers.use { _ in
          using.signal()
          #expect(Self.wait(for: mayEnd))
        }
        #expect(hasRead)
      }
    }
    for _ in all { try #require(Self.wait(for: using)) }
    let one = startThread { #expect(readers.use { _ in using.signal() }) }
    #expect(using.wait(timeout: .now() + 0.05) == .timedOut)
    mayEnd.signal()
    try #require(Self.wait(for: using))
    try #require(Self.wait(for: one))
    for _ in all.dropFirst() { mayEnd.signal() }
    for ended in all { try #require(Self.wait(for: ended)) }
    #expect(readers.count == IndexReaders.limit)
    readers.close()
    try vault.close()
  }

  private final class Usage: Sendable {
    let reading = Atomic(0)
    let isAlone = Atomic(false)
    let readCount = Atomic(0)
  }

  @Test func `while somebody must be alone nobody reads, and before and after it everybody does`() async throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let readers = Openings(fixture).readers(vault)
    readers.want()
    let usage = Usage()
    let rounds = Effort.scaled(1000)
    await withTaskGroup(of: Void.self) { group in
      for kind in 0..<5 {
        group.addTask {
          for round in 0..<rounds {
            if kind == 0 {
              readers.pausing {
                usage.isAlone.store(true, ordering: .sequentiallyConsistent)
                let reading = usage.reading.load(ordering: .sequentiallyConsistent)
                #expect(reading == 0)
                let hasRead = readers.use { _ in }
                #expect(!hasRead)
                usage.isAlone.store(false, ordering: .sequentiallyConsistent)
              }
            } else if kind == 1, round.isMultiple(of: 50) {
              readers.shrinkMemory()
            } else {
              let hasRead = readers.use { _ in
                usage.reading.add(1, ordering: .sequentiallyConsistent)
                let isAlone = usage.isAlone.load(ordering: .sequentiallyConsistent)
                #expect(!isAlone)
                usage.reading.subtract(1, ordering: .sequentiallyConsistent)
              }
              if hasRead { usage.readCount.add(1, ordering: .relaxed) }
            }
          }
        }
      }
    }
    let readCount = usage.readCount.load(ordering: .relaxed)
    #expect(readCount > 0)
    #expect(readers.use { _ in })
    readers.close()
    try vault.close()
  }

  @Test func `who is alone with the index is asked for what others leave out`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let tables = vault.index.tables
    var calls: [Bool] = []
    // Nobody has the index's own.
    tables.reading { _, isAlone in
      calls.append(isAlone)
      return true
    }
    #expect(calls == [true])
    #expect(!tables.readers.areWanted)
    // From the first on who would have had to wait, each has one.
    calls = []
    let found = Shared<[Bool]>([])
    tables.using { _ in
      let ended = startThread {
        vault.index.tables.reading { _, isAlone in
          found.change { $0.append(isAlone) }
          return false
        }
      }
      #expect(Self.wait(for: ended))
    }
    #expect(found.now == [false])
    for needsToBeAlone in [false, true] {
      calls = []
      tables.reading { _, isAlone in
        calls.append(isAlone)
        #expect(tables.isInUse == isAlone)
        return needsToBeAlone
      }
      #expect(calls == (needsToBeAlone ? [false, true] : [false]))
    }
    try vault.close()
  }

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
    vault.index.tables.commitsBeforeJournal = .max
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
      vault.index.tables.commitsBeforeJournal = 1
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
    tables.willCommit = {
      stepCount += 1
      let ended = startThread { size.set(try? vault.index.read { try $0.inode(numbers[7]).byteCount }) }
      #expect(Self.wait(for: ended))
      #expect(size.now == 3007)
    }
    try vault.commit()
    tables.willCommit = {}
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
    tables.willCommit = { counts.append(failureCount()) }
    tables.willPublish = { counts.append(failureCount()) }
    try vault.commit()
    (tables.willCommit, tables.willPublish) = ({}, {})
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
  @Test func `what does not fit beside a commit is asked for again after it`() throws {
    let fixture = try VaultFixture()
    let (vault, numbers) = try Self.changedVault(fixture)
    let tables = vault.index.tables
    tables.readers.want()
    // A neighbour that is not changed, in the bucket of one that is.
    let buckets = numbers.map { number in vault.index.read { $0.rowKeys.inode(number).bucket } }
    let pair = try #require(
      numbers.indices.dropFirst().first { !$0.isMultiple(of: 2) && buckets[$0] == buckets[$0 - 1] })
    tables.willCommit = {
      // As where many others have been read since the commit looked.
      vault.index.read { session in
        session.remember(nil)
        session.stored.forgetVerified { _ in false }
      }
    }
    let looks = Shared<[Bool]>([])
    let hasLooked = DispatchSemaphore(value: 0)
    let size = Shared<Result<UInt64, any Error>?>(nil)
    var ended: DispatchSemaphore?
    tables.willPublish = {
      vault.index.willAnswer = { _, isAlone in
        looks.change { $0.append(isAlone) }
        hasLooked.signal()
      }
      ended = startThread {
        size.set(Result { try vault.index.read { try $0.inode(numbers[pair]).byteCount } })
      }
      // It finds something else than it expects, and waits for who stores.
      #expect(Self.wait(for: hasLooked))
    }
    try vault.commit()
    (tables.willCommit, tables.willPublish) = ({}, {})
    try #require(Self.wait(for: try #require(ended)))
    vault.index.willAnswer = { _, _ in }
    #expect(looks.now.first == false && looks.now.contains(true))
    #expect(try #require(size.now).get() == UInt64(3000 + pair))
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  @Test func `where little room is left nobody reads while something is stored`() throws {
    let fixture = try VaultFixture()
    let (vault, _) = try Self.changedVault(fixture)
    let tables = vault.index.tables
    tables.readers.want()
    var hasRead: [Bool] = []
    tables.willCommit = { hasRead.append(tables.readers.use { _ in }) }
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
    tables.willCommit = {}
    #expect(hasRead == [false, false, false, true])
    try vault.close()
  }

  /// Else the log would grow for as long as somebody always reads.
  @Test func `a log that has become too long waits for who reads there, and begins anew`() throws {
    let fixture = try VaultFixture()
    let (vault, numbers) = try Self.changedVault(fixture)
    let tables = vault.index.tables
    tables.mostLogPages = 1100
    tables.readers.want()
    let lent = try #require(tables.readers.lend())
    try lent.queue.inDatabase { db in
      try db.execute(sql: "BEGIN")
      _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM root")
    }
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
    #expect(Self.wait { tables.readers.mustEnd })
    isOver.store(true, ordering: .relaxed)
    try lent.queue.inDatabase { db in try db.execute(sql: "ROLLBACK") }
    tables.readers.end(lent)
    #expect(Self.wait(for: committing))
    let longest = try FileSystem().status(of: fixture.vaultPath + "/index.sqlite-wal")?.byteCount ?? .max
    #expect(longest < 2000 * UInt64(IndexDatabase.pageSize))
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  // MARK: Copies

  /// With so many rows that a copy has some steps, all of them in SQLite.
  private static func largeVault(_ fixture: VaultFixture) throws -> (vault: Vault, numbers: [InodeNumber]) {
    let vault = try fixture.create()
    let numbers = try (0..<2 * count).map { number in
      let file = try vault.createFile(at: VaultPath("file\(number)"))
      try file.write([UInt8](repeating: 7, count: 3000 + number), at: 0)
      try file.close()
      return try vault.attributes(at: VaultPath("file\(number)")).number
    }
    vault.index.tables.commitsBeforeJournal = .max
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
        #expect(Self.wait(for: ended))
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
      vault.index.tables.commitsBeforeJournal = 1
      try vault.setAttributes(AttributeChanges(permissions: 0o640), of: numbers[last])
      try vault.commit()
      try fixture.copyAsAfterCrash()
      try vault.close()
      vault = try fixture.openAfterCrash()
      vault.index.tables.commitsBeforeJournal = .max
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
        #expect(Self.wait(for: ended))
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
        #expect(Self.wait { vault.index.tables.readers.mustEnd })
        return false
      }))
    try #require(Self.wait(for: try #require(ended.now)))
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
          #expect(Self.wait { vault.index.tables.readers.mustEnd })
        }
        return false
      }
    }
    #expect(stepCount.now == 1)
    #expect(Self.wait(for: try #require(ended.now)))
  }

  // MARK: What is on the disk

  /// The pages that connections have in memory are not what is stored.
  @Test func `who verifies reads through no connection what it has read before`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    for number in 0..<200 { try vault.createFile(at: VaultPath("file\(number)")).close() }
    try vault.commit()
    try vault.index.forgetOpened()
    vault.index.tables.readers.want()
    #expect(try vault.verify(isDeep: false).isClean)
    // What the log has goes into the index, so that it is read from there.
    vault.index.cutLog()
    #expect(try vault.verify(isDeep: false).isClean)
    #expect(vault.index.tables.readers.count > 0)

    let path = fixture.vaultPath + "/" + VaultFormat.index
    let file = try FileHandle(forUpdating: URL(filePath: path))
    let byteCount = try file.seekToEnd()
    for page in 1..<byteCount / UInt64(IndexDatabase.pageSize) {
      try file.seek(toOffset: page * UInt64(IndexDatabase.pageSize))
      try file.write(contentsOf: Data(repeating: 0x5a, count: IndexDatabase.pageSize))
    }
    try file.close()
    #expect((try? vault.verify(isDeep: false).isClean) != true)
    try? vault.close()
  }

  /// A reader finds a row that it asked for before everything is to be read anew.
  @Test func `what was read before everything is to be read anew is read again`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let numbers = try (0..<40).map { number in
      try vault.createFile(at: VaultPath("file\(number)")).close()
      return try vault.attributes(at: VaultPath("file\(number)")).number
    }
    try vault.commit()
    try vault.index.forgetOpened()
    vault.index.tables.readers.want()
    let number = numbers[20]
    let bucket = vault.index.read { $0.rowKeys.inode(number).bucket }
    for read in [
      StoredRead.bucket(bucket), .value(RowID(kind: .inode, key: vault.index.read { $0.rowKeys.inode(number) })),
    ] {
      try vault.index.forgetOpened()
      var lookCount = 0
      vault.index.willAnswer = { reads, _ in
        guard reads.contains(read) else { return }
        lookCount += 1
        if lookCount == 1 { #expect(throws: Never.self) { try vault.index.forgetOpened() } }
      }
      _ = try vault.index.read { try $0.inode(number) }
      vault.index.willAnswer = { _, _ in }
      #expect(lookCount == 2)
    }
    try vault.close()
  }

  @Test func `the index has no file but itself and its log, whoever reads`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    for number in 0..<20 { try vault.createFile(at: VaultPath("file\(number)")).close() }
    try vault.commit()
    vault.index.tables.readers.want()
    try vault.index.forgetOpened()
    _ = try vault.attributes(at: VaultPath("file3"))
    #expect(vault.index.tables.readers.count == 1)
    let names = try FileManager.default.contentsOfDirectory(atPath: fixture.vaultPath)
    #expect(Set(names.filter { $0.hasPrefix("index") }) == ["index.sqlite", "index.sqlite-wal"])
    try vault.close()
    #expect(!FileManager.default.fileExists(atPath: fixture.vaultPath + "/index.sqlite-wal"))
  }

  @Test(arguments: [
    "with space", "per%20cent", "what?vfs=unix", "hash#tag", "semi;colon", "ümläut", "plus+and&=", "//two",
  ])
  func `an index is opened wherever it lies`(_ name: String) throws {
    let fixture = try VaultFixture()
    let folder = fixture.folder("x") + "/" + name
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let path = (name.hasPrefix("/") ? "/" : "") + folder + "/" + VaultFormat.index
    try IndexDatabase.create(at: path)
    let queue = try IndexDatabase.open(at: path)
    let reader = try IndexDatabase.openReader(at: path, .little)
    #expect(try reader.inDatabase { try Int.fetchOne($0, sql: "SELECT count(*) FROM entry") } == 0)
    #expect(throws: (any Error).self) {
      try reader.inDatabase { try $0.execute(sql: "INSERT INTO salt(id, value) VALUES (1, x'00')") }
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).contains(VaultFormat.index))
    try reader.close()
    try queue.close()
  }
}
