import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import GRDB
import Synchronization
import Testing

@testable import CofferVault

/// Operations that need what is not in memory, and those beside them that do not.
@Suite(.timeLimit(.minutes(10))) struct IndexReadingTests {
  private static func vault(_ fixture: VaultFixture, files count: Int = 40) throws -> Vault {
    let vault = try fixture.create()
    for number in 0..<count {
      // Some in their records, some in objects.
      let file = try vault.createFile(at: VaultPath("file\(number)"))
      try file.write([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 100 + number * 400), at: 0)
      try file.close()
    }
    try vault.commit()
    return vault
  }

  /// Of "file7".
  private static let size: UInt64 = 100 + 7 * 400

  private static func number(of name: String, in vault: Vault) throws -> InodeNumber {
    try vault.attributes(at: VaultPath(name)).number
  }

  private final class Flag: Sendable { let isSet = Atomic(false) }
  private final class Found: Sendable { let size = Mutex<UInt64?>(nil) }

  @Test func `who waits for what is stored keeps nobody else waiting`() throws {
    let fixture = try VaultFixture()
    let vault = try Self.vault(fixture)
    let number = try Self.number(of: "file7", in: vault)
    try vault.index.forgetOpened()
    // In memory again: the root folder, and what stands in its bucket, but not the file.
    let root = try vault.attributes(of: .rootFolder)
    let asked = DispatchSemaphore(value: 0)
    let found = Found()
    // Nobody reads meanwhile: as while a commit writes where little room is left.
    let tables = vault.index.tables
    tables.readers.want()
    let ended = try tables.using { _ in
      try tables.readers.pausing {
        let ended = startThread {
          let size = try? vault.index.read { session in
            asked.signal()
            return try session.inode(number).byteCount
          }
          found.size.withLock { $0 = size }
        }
        asked.wait()
        // It has the lock, or has given it back to wait. Whoever needs nothing that is stored goes on.
        #expect(try vault.attributes(of: .rootFolder) == root)
        try vault.setAttributes(AttributeChanges(permissions: 0o711), of: .rootFolder)
        #expect(try vault.attributes(of: .rootFolder).permissions == 0o711)
        #expect(found.size.withLock { $0 } == nil)
        return ended
      }
    }
    ended.wait()
    #expect(found.size.withLock { $0 } == Self.size)
    try vault.close()
  }

  @Test func `an operation that had to wait sees one state, whatever is committed meanwhile`() async throws {
    let fixture = try VaultFixture()
    let vault = try Self.vault(fixture)
    // Their rows lie in different buckets: the second is too far from the first to be its neighbour.
    let first = try Self.number(of: "file0", in: vault)
    for number in 0..<200 { try vault.makeDirectory(at: VaultPath("folder\(number)")) }
    let second = try Self.number(of: "folder199", in: vault)
    let done = Flag()
    @Sendable func setBoth(_ permissions: UInt16) throws {
      try vault.index.perform { session in
        for number in [first, second] {
          var inode = try session.inode(number)
          inode.permissions = permissions
          try session.store(inode)
        }
      }
    }
    // A file and a folder begin with different ones, and a reader may come first.
    try setBoth(0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        defer { done.isSet.store(true, ordering: .releasing) }
        for round in 0..<UInt16(Effort.scaled(1500)) {
          try setBoth(round & 0o777)
          try vault.commitNames()
        }
      }
      for _ in 0..<2 {
        group.addTask {
          while !done.isSet.load(ordering: .acquiring) {
            let (one, other) = try vault.index.read { session in
              (try session.inode(first).permissions, try session.inode(second).permissions)
            }
            #expect(one == other)
          }
        }
      }
      group.addTask {
        while !done.isSet.load(ordering: .acquiring) { try vault.index.forgetOpened() }
      }
      try await group.waitForAll()
    }
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  @Test func `an operation that goes on without what it needs begins anew, and nothing of it stays`() throws {
    let fixture = try VaultFixture()
    let vault = try Self.vault(fixture)
    let number = try Self.number(of: "file7", in: vault)
    let next = vault.index.read { $0.root.nextInode }
    try vault.index.forgetOpened()
    var attempts = 0
    let size = try vault.index.perform { session in
      attempts += 1
      _ = session.newInodeNumber()
      return try? session.inode(number).byteCount
    }
    #expect(size == Self.size)
    #expect(attempts > 1)
    #expect(vault.index.read { $0.root.nextInode } == next + 1)
    try vault.close()
  }

  @Test func `what many need one after the other is read together`() throws {
    let fixture = try VaultFixture()
    let vault = try Self.vault(fixture, files: 200)
    let numbers = try (0..<200).map { try Self.number(of: "file\($0)", in: vault) }
    try vault.index.forgetOpened()
    var attempts = 0
    let sizes = try vault.index.read { session in
      attempts += 1
      return try session.gather(numbers) { try session.inode($0).byteCount }
    }
    let expected: [UInt64] = (0..<200).map { 100 + UInt64($0) * 400 }
    #expect(sizes == expected)
    // The pages that say what their buckets hold, the buckets, the rows, and then all of it.
    #expect(attempts <= 4)
    try vault.close()
  }

  @Test func `who reads one record after the other is given the next with it, and no other does`() throws {
    let fixture = try VaultFixture()
    let vault = try Self.vault(fixture, files: 200)
    let numbers = try (0..<200).map { try Self.number(of: "file\($0)", in: vault) }
    func attempts(_ order: [Int]) throws -> Int {
      try vault.index.forgetOpened()
      var attempts = 0
      for position in order {
        let size = try vault.index.read { session in
          attempts += 1
          return try session.inode(numbers[position]).byteCount
        }
        #expect(size == 100 + UInt64(position) * 400)
      }
      return attempts
    }
    // Two buckets for each 64, and one more for each of those that are read alone.
    #expect(try attempts(Array(0..<200)) < 200 + 200 / 8 + 20)
    let apart = (0..<8).flatMap { first in stride(from: 199 - first, through: 0, by: -20) }
    #expect(try attempts(apart) >= 2 * apart.count)
    // Numbers that nobody has.
    try vault.index.forgetOpened()
    for number in (UInt64.max - 40)...UInt64.max {
      #expect(try vault.index.read { try $0.inodeIfPresent(InodeNumber(value: number)) == nil })
    }
    // What was given is no longer what is stored.
    _ = try attempts([50, 51])
    for position in 52..<60 { try vault.setAttributes(AttributeChanges(permissions: 0o700), of: numbers[position]) }
    try vault.commitNames()
    for position in 52..<60 { #expect(try vault.attributes(of: numbers[position]).permissions == 0o700) }
    try vault.close()
  }

  @Test func `damage of a record that is given ahead is told to nobody but who asks for it`() throws {
    let fixture = try VaultFixture()
    let vault = try Self.vault(fixture, files: 60)
    let numbers = try (0..<60).map { try Self.number(of: "file\($0)", in: vault) }
    let key = vault.index.read { $0.rowKeys.inode(numbers[30]) }
    try vault.close()
    // The row that counts, with its tag, and content that this tag is not of.
    let raw = try RawIndex(fixture.vaultPath)
    var value = try #require(try raw.value(.record, Data(key.bytes).databaseValue))
    value[value.count / 2] ^= 1
    try raw.update(.record, Data(key.bytes).databaseValue, to: value)
    try raw.close()
    let again = try fixture.open()
    for position in 0..<60 {
      let size = Result { try again.index.read { try $0.inode(numbers[position]).byteCount } }
      if position == 30 {
        #expect(throws: (any Error).self) { try size.get() }
      } else {
        #expect(try size.get() == 100 + UInt64(position) * 400)
      }
    }
    try again.close()
  }

  @Test func `a salt that somebody stored for one that was drawn means nothing`() throws {
    let sealer = RecordSealer(metadataKey: SecretKey(), vault: VaultID())
    let row = [UInt8](repeating: 7, count: RowKey.byteCount)
    let drawn = sealer.key(3, drawn: [UInt8](repeating: 1, count: RecordSealer.saltByteCount))
    _ = try sealer.key(3, stored: [UInt8](repeating: 2, count: RecordSealer.saltByteCount))
    // Its commit is stored.
    sealer.keep(drawn)
    try row.withUnsafeBytes { row in
      let sealed = try drawn.seal([1, 2, 3], kind: .inode, row: row)
      let key = try #require(sealer.key(3))
      #expect(try sealed.withUnsafeBytes { try key.open($0, kind: .inode, row: row) } == [1, 2, 3])
    }
  }

  @Test func `an operation for which memory is never enough gets the connection`() throws {
    let fixture = try VaultFixture()
    let vault = try Self.vault(fixture)
    let number = try Self.number(of: "file7", in: vault)
    let size = try vault.index.read { session in
      session.forgetOpened()
      return try session.inode(number).byteCount
    }
    #expect(size == Self.size)
    #expect(vault.index.read { $0.hasConnection } == false)
    try vault.close()
  }

  @Test func `what cannot be read is told to the operation that needs it, where it needs it`() throws {
    let fixture = try VaultFixture()
    let vault = try Self.vault(fixture, files: 200)
    let numbers = try (0..<200).map { try Self.number(of: "file\($0)", in: vault) }
    // One in a bucket that no opening looks at.
    let (number, key) = try vault.index.read { session in
      let used = [session.rowKeys.pendingPrefix.high, session.rowKeys.inode(.rootFolder).high].map(RowKey.bucket)
      return try #require(
        numbers.lazy.map { ($0, session.rowKeys.inode($0)) }.first { !used.contains($0.1.bucket) })
    }
    try vault.close()
    let raw = try RawIndex(fixture.vaultPath)
    try raw.delete(.record, Data(key.bytes).databaseValue)
    try raw.close()
    let again = try fixture.open()
    for _ in 0..<2 {
      var told: [VaultError] = []
      let isThere = try again.index.read { session in
        told = []
        do { return try session.inodeIfPresent(number) != nil } catch let error as VaultError {
          told.append(error)
          return true
        }
      }
      #expect(isThere)
      #expect(told == [.damaged(what: "rows of the index's bucket \(key.bucket)")])
    }
    // And nothing else is harmed.
    #expect(try again.attributes(of: .rootFolder).kind == .directory)
    try again.close()
  }

  @Test func `operations go on while the rows are copied`() throws {
    let fixture = try VaultFixture()
    let vault = try Self.vault(fixture)
    let root = try vault.attributes(of: .rootFolder)
    var asked = 0
    let copied = try vault.index.copy(to: fixture.folder("copy")) {
      asked += 1
      // Whoever held the lock here would wait for themselves.
      #expect((try? vault.attributes(of: .rootFolder)) == root)
      return false
    }
    #expect(asked > 0)
    #expect(copied.root.generation == vault.index.read { $0.committed.generation })
    try vault.close()
  }

  /// Every operation finds nothing in memory, and so begins anew for each thing that it needs.
  @Test func `the vault does what the model does when nothing stays in memory`() throws {
    let run = try ModelRun(nameMask: nil)
    run.forgets = true
    for seed in 0..<Effort.scaled(60) {
      do {
        try run.run(seed: 100_000 + seed, steps: 30)
      } catch {
        Issue.record("seed \(100_000 + seed): \(error)")
        break
      }
    }
    run.snapshots = []
    try run.close()
  }
}
