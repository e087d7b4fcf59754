import CofferCrypto
import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// Readers in the midst of what others do with the index's connection.
@Suite(.timeLimit(.minutes(10))) struct ConnectionTurnsTests {
  private final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    init(_ value: Value) { self.value = Mutex(value) }
    var now: Value { value.withLock { $0 } }
    func set(_ new: Value) { value.withLock { $0 = new } }
    func change(_ body: (inout Value) -> Void) { value.withLock { body(&$0) } }
  }

  private static func wait(until condition: () -> Bool) { while !condition() { sched_yield() } }

  // MARK: Turns

  @Test func `a reader has its turn while somebody else goes on to have the connection`() {
    let turns = ConnectionTurns()
    let readCount = Shared(0)
    turns.take(lettingReadersIn: true) {
      #expect(!turns.letReadersIn())
      for round in 1...3 {
        let ended = startThread { turns.read(where: { true }) { _ in readCount.change { $0 += 1 } } }
        Self.wait { turns.readerCount == 1 }
        #expect(readCount.now == round - 1)
        #expect(turns.letReadersIn())
        ended.wait()
        #expect(readCount.now == round)
      }
      #expect(!turns.letReadersIn())
    }
  }

  @Test func `who may not read yet waits for the connection, and keeps nobody else waiting`() {
    let turns = ConnectionTurns()
    let order = Shared<[String]>([])
    let (first, second) = turns.take(lettingReadersIn: true) {
      let first = startThread { turns.read(where: { false }) { _ in order.change { $0.append("may not") } } }
      Self.wait { turns.readerCount == 1 }
      let second = startThread { turns.read(where: { true }) { _ in order.change { $0.append("may") } } }
      Self.wait { turns.readerCount == 2 }
      #expect(turns.letReadersIn())
      second.wait()
      #expect(!turns.letReadersIn())
      #expect(order.now == ["may"])
      return (first, second)
    }
    first.wait()
    _ = second
    #expect(order.now == ["may", "may not"])
    #expect(turns.readerCount == 0)
  }

  @Test func `nobody is let in who is not wanted`() {
    let turns = ConnectionTurns()
    let hasRead = Shared(false)
    // Whoever has it holds a lock that the reader takes.
    let ended = turns.take(lettingReadersIn: false) {
      let ended = startThread { turns.read(where: { true }) { _ in hasRead.set(true) } }
      Self.wait { turns.readerCount == 1 }
      #expect(!turns.letReadersIn())
      #expect(!hasRead.now)
      return ended
    }
    ended.wait()
    #expect(hasRead.now)
    // Nor after somebody who wanted some.
    turns.take(lettingReadersIn: true) {}
    turns.read(where: { true }, { isLetIn in #expect(!isLetIn && !turns.letReadersIn()) })
  }

  private final class Usage: @unchecked Sendable {
    let users = Atomic(0)
    /// Nothing but the turns keeps it whole.
    var sum = 0
    let turnCount = Atomic(0)

    func use() {
      #expect(users.add(1, ordering: .sequentiallyConsistent).newValue == 1)
      sum += 1
      users.subtract(1, ordering: .sequentiallyConsistent)
    }
  }

  @Test func `one thread at a time has the connection, and each its turn`() async {
    let turns = ConnectionTurns()
    let usage = Usage()
    let rounds = Effort.scaled(2000)
    await withTaskGroup(of: Void.self) { group in
      for kind in 0..<6 {
        group.addTask {
          for round in 0..<rounds {
            switch kind {
            case 0, 1:
              turns.take(lettingReadersIn: kind == 0) {
                usage.use()
                for _ in 0..<4 { _ = turns.letReadersIn() }
                usage.use()
              }
            default:
              turns.read(where: { (kind + round) % 3 > 0 }, { _ in usage.use() })
            }
            usage.turnCount.add(1, ordering: .relaxed)
          }
        }
      }
    }
    #expect(usage.turnCount.load(ordering: .relaxed) == 6 * rounds)
    #expect(usage.sum == 8 * rounds)
    #expect(turns.readerCount == 0)
  }

  @Test func `readers take as long as the rows of a transaction, and a millisecond more`() {
    let millisecond: UInt64 = 1_000_000
    var now: UInt64 = 5_000 * millisecond
    var time = ReadersTime { now }
    func isLeft() -> Bool { time.isLeft() }
    // A turn in which nobody waits is none.
    time.didLetIn()
    #expect(isLeft())
    now += millisecond
    #expect(isLeft())
    now += 1
    #expect(!isLeft())
    time.didLetIn()
    // Four of rows, after one and a bit of readers.
    now += 4 * millisecond
    #expect(isLeft())
    now += 4 * millisecond - 1
    #expect(isLeft())
    now += 1
    #expect(!isLeft())
    time.didLetIn()
    #expect(!isLeft())
  }

  // MARK: What a transaction changes

  @Test func `what a transaction changes is what it is said to change`() {
    var generator = SeededGenerator(seed: 77)
    let buckets = 6
    func key() -> RowKey {
      // Few enough that neighbours, equals and whole buckets without a row come up.
      let bucket = UInt64.random(in: 0..<UInt64(buckets), using: &generator)
      let rest = UInt64.random(in: 0..<3, using: &generator)
      return RowKey(high: bucket << (64 - VaultFormat.bucketBits) | rest, low: .random(in: 0..<4, using: &generator))
    }
    let kinds: [RecordKind] = [.entry, .inode, .map]
    var touched = 0
    for _ in 0..<Effort.scaled(3000) {
      let rows = (0..<Int.random(in: 0...8, using: &generator)).map { _ in
        RowID(kind: kinds.randomElement(using: &generator)!, key: key())
      }
      let pages = (0..<Int.random(in: 0...2, using: &generator)).map { _ in Int.random(in: 0..<4, using: &generator) }
      let underWay = RowsUnderWay(rows: rows, pages: pages)
      let kind = kinds.randomElement(using: &generator)!
      let one = key()
      let inTable = rows.filter { $0.kind.table == kind.table }.map(\.key)
      #expect(underWay.touches(.value(RowID(kind: kind, key: one))) == inTable.contains(one))
      for page in 0..<4 { #expect(underWay.touches(.page(page)) == pages.contains(page)) }
      for bucket in 0..<buckets {
        #expect(underWay.touches(.bucket(bucket)) == rows.contains { $0.key.bucket == bucket })
      }
      // From behind the first to the last, of one prefix; or from the prefix's beginning.
      let first = Bool.random(using: &generator) ? RowKey(high: one.high, low: one.low / 2) : nil
      let isAmong = inTable.contains { key in
        key.high == one.high && key <= one && (first.map { $0 < key } ?? true)
      }
      let isTouched = underWay.touches(.values(kind, after: first, through: one, count: 4))
      #expect(isTouched || !isAmong)
      // The first itself may count among them, and nothing else.
      #expect(!isTouched || isAmong || first.map(inTable.contains) == true)
      if isTouched { touched += 1 }
    }
    #expect(touched > 0)
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
    vault.index.tables.now = { 0 }
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
        try vault.index.tables.using { try #require(vault.index.tables.journal).room } < CommitJournal.byteCount / 2
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

  @Test func `who needs what is stored has it in the midst of a commit`() throws {
    let fixture = try VaultFixture()
    let (vault, numbers) = try Self.changedVault(fixture)
    let size = Shared<UInt64?>(nil)
    var ended: DispatchSemaphore?
    var sizes: [UInt64?] = []
    let tables = vault.index.tables
    tables.willLetReadersIn = {
      sizes.append(size.now)
      if ended == nil {
        ended = startThread { size.set(try? vault.index.read { try $0.inode(numbers[7]).byteCount }) }
      }
      // It needs one thing after the other, and is let in for each.
      Self.wait { tables.turns.readerCount == 1 || size.now != nil }
    }
    try vault.commit()
    tables.willLetReadersIn = {}
    try #require(ended).wait()
    // While rows were still to be written.
    #expect(sizes.count > 8)
    #expect(sizes.first == .some(nil))
    #expect(sizes.last == 3007)
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  /// What may be read there is as the last commit left it, and what may not is what has changed.
  @Test(arguments: [false, true])
  func `in the midst of a commit the rows that it leaves are there, and the others are asked by nobody`(
    isJournaled: Bool
  ) throws {
    let fixture = try VaultFixture()
    let (vault, numbers) = try Self.changedVault(fixture, isJournaled: isJournaled)
    let tables = vault.index.tables
    // Known, so that the session says what must be found.
    for number in numbers { _ = try vault.attributes(of: number) }
    let rows = vault.index.read { session in numbers.map { RowID(kind: .inode, key: session.rowKeys.inode($0)) } }
    let reads = rows.map { StoredRead.value($0) } + (0..<VaultFormat.bucketCount / 64).map { StoredRead.page($0) }
    let expectations = vault.index.read { $0.expectations(of: reads) }
    let pages = expectations.filter { if case .page = $0.read { true } else { false } }
    #expect(!pages.isEmpty)
    #expect(expectations.count - pages.count == numbers.count)
    var found = (unharmed: 0, changed: 0, refused: 0)
    tables.willLetReadersIn = {
      for (read, expected) in expectations {
        let outcome = Result { try tables.answer(read, expected) }
        if !tables.isUnderWay(read) {
          #expect(throws: Never.self) { try outcome.get() }
          found.unharmed += 1
        } else {
          found.refused += 1
          if case .failure = outcome { found.changed += 1 }
        }
      }
    }
    try vault.commit()
    tables.willLetReadersIn = {}
    #expect(found.unharmed > 0)
    #expect(found.refused > 0)
    // Whoever read them would have been told of damage.
    #expect(found.changed > 0)
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  /// SQLite ends a transaction by itself after some errors of a read; the rows that are left would be stored one by one.
  @Test func `a commit whose transaction a reader has ended is made without readers`() throws {
    let fixture = try VaultFixture()
    let (vault, numbers) = try Self.changedVault(fixture)
    let tables = vault.index.tables
    let size = Shared<UInt64?>(nil)
    var ended: DispatchSemaphore?
    var turnCount = 0
    tables.willLetReadersIn = {
      turnCount += 1
      // Some rows are stored.
      guard turnCount == 4 else { return }
      ended = startThread { size.set(try? vault.index.read { try $0.inode(numbers[7]).byteCount }) }
      Self.wait { tables.turns.readerCount == 1 }
      try? tables.statements.rollback.run()
    }
    try vault.commit()
    tables.willLetReadersIn = {}
    try #require(ended).wait()
    #expect(turnCount == 4)
    #expect(size.now == 3007)
    try vault.close()
    let again = try fixture.open()
    for (position, number) in numbers.enumerated() {
      #expect(try (again.attributes(of: number).permissions == 0o700) == (position % 2 == 0))
    }
    #expect(try again.verify(isDeep: true).isClean)
    try again.close()
  }

  /// What fails there may be the writer's failure: whoever asks again when it is over is told what is so.
  @Test func `what fails in the midst of a commit is asked for again after it`() throws {
    let fixture = try VaultFixture()
    let (vault, numbers) = try Self.changedVault(fixture)
    let tables = vault.index.tables
    let key = vault.index.read { $0.rowKeys.inode(numbers[7]) }
    let record = tables.statements[.record]
    let stored = try tables.using {
      try key.withBytes { key in try #require(try record.value.first(.bytes(key)) { Array(try $0[0]) }) }
    }
    let size = Shared<Result<UInt64, any Error>?>(nil)
    var ended: DispatchSemaphore?
    var turnCount = 0
    tables.willLetReadersIn = {
      turnCount += 1
      do {
        switch turnCount {
        case 4:
          ended = startThread {
            let found = Result { try vault.index.read { try $0.inode(numbers[7]).byteCount } }
            size.set(found)
          }
          Self.wait { tables.turns.readerCount == 1 }
          try key.withBytes { try record.delete.run(.bytes($0)) }
        case 8:
          #expect(size.now == nil)
          try key.withBytes { key in try stored.withUnsafeBytes { try record.insert.run(.bytes(key), .bytes($0)) } }
        default: break
        }
      } catch { Issue.record(error) }
    }
    try vault.commit()
    tables.willLetReadersIn = {}
    try #require(ended).wait()
    #expect(turnCount > 8)
    #expect(try #require(size.now).get() == 3007)
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  @Test func `a turn ends where it has taken long enough, and who waits has the next`() {
    let turns = ConnectionTurns()
    let readCount = Shared(0)
    let ended = turns.take(lettingReadersIn: true) {
      let ended = (0..<3).map { _ in
        startThread { turns.read(where: { true }) { isLetIn in readCount.change { $0 += isLetIn ? 1 : 100 } } }
      }
      Self.wait { turns.readerCount == 3 }
      #expect(!turns.letReadersIn(while: { false }))
      #expect(turns.letReadersIn(while: { readCount.now < 1 }))
      #expect(readCount.now == 1)
      #expect(turns.letReadersIn(while: { readCount.now < 2 }))
      #expect(readCount.now == 2)
      return ended
    }
    for ended in ended { ended.wait() }
    #expect(readCount.now == 102)
  }

  @Test func `who needs what is stored has it in the midst of a copy`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    // Some steps of it.
    for number in 0..<2 * Self.count {
      let file = try vault.createFile(at: VaultPath("file\(number)"))
      try file.write([UInt8](repeating: 7, count: 3000 + number), at: 0)
      try file.close()
    }
    try vault.commit()
    let number = try vault.attributes(at: VaultPath("file9")).number
    try vault.index.forgetOpened()
    let size = Shared<UInt64?>(nil)
    var ended: DispatchSemaphore?
    var sizes: [UInt64?] = []
    let turns = vault.index.tables.turns
    _ = try vault.index.copy(to: fixture.folder("copy")) {
      sizes.append(size.now)
      if ended == nil {
        ended = startThread { size.set(try? vault.index.read { try $0.inode(number).byteCount }) }
      }
      Self.wait { turns.readerCount == 1 || size.now != nil }
      return false
    }
    try #require(ended).wait()
    // While there were steps left.
    #expect(sizes.last == 3009, "\(sizes.count)")
    try vault.close()
  }

  // MARK: Removal

  @Test func `a file that was long once leaves no row behind`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let far: UInt64 = 2 * UInt64(VaultFormat.blocksPerPage) * MapDirectory.pagesPerGroup << 12
    for isCut in [true, false] {
      let path = try VaultPath("long")
      let file = try vault.createFile(at: path, blockSizeExponent: 12)
      try file.write([UInt8](repeating: 1, count: 20_000), at: 0)
      try file.write([UInt8](repeating: 2, count: 20_000), at: far)
      try file.sync()
      let number = try vault.attributes(at: path).number
      let key = vault.index.read { $0.rowKeys.mapDirectory(number, 0) }
      #expect(try vault.index.read { try $0.value(.mapDirectory, key) } != nil)
      if isCut {
        try file.truncate(to: 20_000)
        try file.sync()
        #expect(try vault.index.read { try $0.value(.mapDirectory, key) } == nil)
      }
      try file.close()
      try vault.commit()
      try vault.remove(path)
      try vault.commit()
      #expect(try vault.index.read { try $0.value(.mapDirectory, key) } == nil)
      #expect(try vault.verify(isDeep: true).isClean)
    }
    try vault.close()
  }
}
