import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import GRDB
import Synchronization
import Testing

@testable import CofferVault

/// Connections that read the index, and what they have of it in memory.
@Suite(.timeLimit(.minutes(10))) struct IndexReadersTests {
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
        return try IndexReaders.Reader(queue) { try RowReader($0, hasher, sealer) }
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
          #expect(Patience.wait(for: mayEnd))
        }
        #expect(hasRead)
      }
    }
    for _ in all { try #require(Patience.wait(for: using)) }
    let one = startThread { #expect(readers.use { _ in using.signal() }) }
    #expect(using.wait(timeout: .now() + 0.05) == .timedOut)
    mayEnd.signal()
    try #require(Patience.wait(for: using))
    try #require(Patience.wait(for: one))
    for _ in all.dropFirst() { mayEnd.signal() }
    for ended in all { try #require(Patience.wait(for: ended)) }
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
      #expect(Patience.wait(for: ended))
    }
    #expect(found.now == [false])
    for needsToBeAlone in [false, true] {
      calls = []
      tables.reading { _, isAlone in
        calls.append(isAlone)
        #expect(tables.isInUse == isAlone)
        return needsToBeAlone
      }
      #expect(calls == (needsToBeAlone ? [false, false, false, true] : [false]))
    }
    try vault.close()
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
