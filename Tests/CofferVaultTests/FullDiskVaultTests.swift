import CofferFiles
import CofferKeys
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferSystem
@testable import CofferVault

/// A disk that is full indeed: what does not fit is refused at once, what is there stays whole, and what is removed gives its
/// room back.
@Suite(.enabled(if: MountedDisk.isPossible, "a disk that fills up is mounted for these tests, which needs root"))
struct FullDiskVaultTests {
  @Test(arguments: 1...4)
  func `whatever is refused for want of room, the rest is whole, and can be removed`(seed: Int) throws {
    let small = try SmallDisk(mebibytes: 12, seed: UInt64(seed))
    for round in 0..<6 {
      for _ in 0..<80 { try small.step() }
      try small.check(small.vault)
      if round == 3 {
        // A crash on a full disk.
        try small.disk.fill()
        let folder = small.fixture.folder("crashed")
        try FileManager.default.createDirectory(
          atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        try FileManager.default.copyItem(atPath: small.disk.path + "/vault", toPath: folder + "/vault")
        try FileManager.default.copyItem(atPath: small.fixture.folder("keys"), toPath: folder + "/keys")
        let crashed = try small.fixture.openAfterCrash()
        #expect(try crashed.verify(isDeep: true).isClean)
        try crashed.close()
      }
    }
    #expect(small.refusalCount > 10)
    // Everything can go, and with it the room that it took.
    try small.disk.fill()
    for name in small.files.keys { try small.vault.remove(VaultPath(name)) }
    small.files = [:]
    try small.vault.commit()
    try small.check(small.vault)
    try small.vault.close()
    #expect(try TamperTests.objects(small.disk.path + "/vault").isEmpty)
    let again = try Vault.open(
      at: small.disk.path + "/vault", keyStore: small.fixture.keyStore, passcode: { VaultFixture.passcode() },
      options: TestVault.options)
    try small.check(again)
    #expect(try again.verify(isDeep: true).isClean)
    try again.close()
  }

  /// A thread that has just closed a file may have its descriptor for as long as it lacks the processor.
  @Test(arguments: [false, true])
  func `what is removed gives its room back though somebody has its descriptor still`(isLinked: Bool) throws {
    let small = try SmallDisk(mebibytes: 12, seed: 5)
    let bytes = small.generator.bytes(5 << 20)
    func make(_ name: String) throws -> OpenFile {
      let file = try small.vault.createFile(at: VaultPath(name))
      try bytes.withUnsafeBytes { try file.write($0, at: 0) }
      try file.close()
      try small.vault.commit()
      return file
    }
    let file = try make("first")
    // Somebody else has given the object another name: what it has there is theirs.
    let objects = small.disk.path + "/vault/objects"
    let object = try #require(FileManager.default.subpaths(atPath: objects)?.first { $0.contains("/") })
    let link = small.disk.path + "/link"
    if isLinked { try FileManager.default.linkItem(atPath: objects + "/" + object, toPath: link) }
    try small.vault.remove(VaultPath("first"))
    if isLinked {
      try small.vault.commit()
      #expect(try FileManager.default.attributesOfItem(atPath: link)[.size] as? Int ?? 0 >= bytes.count)
      try FileManager.default.removeItem(atPath: link)
    } else {
      let second = try make("second")
      #expect(try small.vault.contents(of: VaultPath("second")) == bytes)
      withExtendedLifetime(second) {}
    }
    withExtendedLifetime(file) {}
    #expect(try small.vault.verify(isDeep: true).isClean)
    try small.vault.close()
  }

  private final class Readers: Sendable {
    let isOver = Atomic(false)
    struct State {
      var found = 0
      var failures: [VaultError] = []
    }
    let state = Mutex(State())
  }

  /// Whoever reads keeps a part of SQLite's log from being copied into the index, and so from being written over.
  @Test func `who reads in the midst of a large commit harms nothing where there is no room`() throws {
    let small = try SmallDisk(mebibytes: 96, seed: 31)
    let bytes = small.generator.bytes(1500)
    for number in 0..<5000 { try small.vault.importFile(small.fixture.source(bytes), to: VaultPath("file \(number)")) }
    try small.vault.commit()
    let all = try (0..<5000).map { try small.vault.attributes(at: VaultPath("file \($0)")).number }
    let (changed, numbers) = (all[..<4000], all[4000...])
    let (vault, readers) = (small.vault, Readers())
    try vault.index.forgetOpened()
    let tables = vault.index.tables
    // The log has no room to use again.
    tables.using { _ in
      tables.emptyLog(growingBy: .max)
      tables.cutLog()
    }
    // More than gathers where there is so little room: as if it had been more when they did.
    for number in changed {
      try vault.index.perform { session in
        var inode = try session.inode(number)
        inode.permissions = 0o640
        try session.store(inode)
      }
    }
    try small.disk.fill()
    tables.readers.want()
    defer { readers.isOver.store(true, ordering: .relaxed) }
    let reading = startThread {
      var next = numbers.startIndex
      repeat {
        // Nothing stays in memory but what the commit needs.
        if next == numbers.startIndex { vault.index.read { $0.forgetOpened() } }
        let some = numbers[next..<min(next + 25, numbers.endIndex)]
        next = some.endIndex == numbers.endIndex ? numbers.startIndex : some.endIndex
        do throws(VaultError) {
          let sizes = try vault.look { session in try session.gather(some) { try session.inode($0).byteCount } }
          readers.state.withLock { $0.found += sizes.count { $0 == 1500 } }
        } catch {
          readers.state.withLock { $0.failures.append(error) }
        }
      } while !readers.isOver.load(ordering: .relaxed)
    }
    #expect(throws: VaultError.full) { try vault.commit() }
    for name in try FileManager.default.contentsOfDirectory(atPath: small.disk.path) where name != "vault" {
      try FileManager.default.removeItem(atPath: small.disk.path + "/" + name)
    }
    try vault.commit()
    readers.isOver.store(true, ordering: .relaxed)
    reading.wait()
    let (found, failures) = readers.state.withLock { ($0.found, $0.failures) }
    #expect(found > 10 && failures.isEmpty, "\(found) \(failures)")
    for number in all.indices { small.files["file \(number)"] = bytes }
    try small.check(vault)
    for number in changed { #expect(try vault.attributes(of: number).permissions == 0o640) }
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  /// - Parameter mebibytes: the larger one has room enough until another program takes it.
  @Test(arguments: [24, 96])
  func `thousands of names can be removed where there is room for nothing else`(mebibytes: Int) throws {
    let small = try SmallDisk(mebibytes: mebibytes, seed: 9)
    // One commit of all that changes most pages of the index, of which there are more than the ballast has room for.
    let bytes = small.generator.bytes(1500)
    for number in 0..<5000 {
      try small.vault.importFile(small.fixture.source(bytes), to: VaultPath("file \(number)"))
    }
    try small.vault.commit()
    try small.disk.fill()
    for number in 0..<5000 { try small.vault.remove(VaultPath("file \(number)")) }
    // Into what they leave in the index.
    try small.vault.importFile(small.fixture.source([4, 5]), to: VaultPath("last"))
    try small.vault.commit()
    small.files = ["last": [4, 5]]
    try small.check(small.vault)
    try small.vault.close()
  }

  /// All that the journal holds changes more pages than there is room for; one entry does not.
  @Test func `what waits in the journal keeps nothing from being removed when the disk is suddenly full`() throws {
    let small = try SmallDisk(mebibytes: 128, seed: 15)
    let bytes = small.generator.bytes(1500)
    let names = (0..<6000).map { "file \($0)" }
    for name in names { try small.vault.importFile(small.fixture.source(bytes), to: VaultPath(name)) }
    let large = try VaultPath("large")
    try small.vault.importFile(small.fixture.source(small.generator.bytes(8 << 20)), to: large)
    try small.vault.commit()
    let tables = small.vault.index.tables
    tables.changeRules { $0.commitsBeforeJournal = 1 }
    try tables.using { _ in
      // Nothing waits from before, and the log has no room to use again.
      try tables.emptyJournal()
      tables.emptyLog(growingBy: .max)
      tables.cutLog()
    }
    func logByteCount() throws -> UInt64 {
      try FileSystem().status(of: small.disk.path + "/vault/index.sqlite-wal")?.byteCount ?? 0
    }
    // Each takes little room in the journal, and changes pages of the index all over it.
    var left = names.shuffled(using: &small.generator)
    while try #require(tables.journal).room > 40_000 {
      for _ in 0..<2 { try small.vault.remove(VaultPath(left.removeLast())) }
      try small.vault.commit()
    }
    #expect(try logByteCount() == 0)
    // The ballast found less room than it wants: what goes to the index at once may not take more than this.
    let spare = small.disk.path + "/spare"
    try Data(count: 600 << 10).write(to: URL(fileURLWithPath: spare))
    try small.disk.fill()
    try FileManager.default.removeItem(atPath: small.disk.path + "/vault/ballast")
    try small.disk.fill("filler of the room that was kept")
    try FileManager.default.removeItem(atPath: spare)
    try small.vault.remove(large)
    try small.vault.commit()
    #expect(try small.vault.space().bytesForProcess > 5 << 20)
    for name in left { small.files[name] = bytes }
    try small.check(small.vault)
    try small.vault.close()
  }

  /// Map pages that have not joined are rows of the next commit, for which the ballast must be enough.
  @Test func `a file with many changed map pages can be removed when the disk is suddenly full`() throws {
    let small = try SmallDisk(mebibytes: 96, seed: 16)
    small.vault.favourRandomAccess(true)
    let path = try VaultPath("sparse")
    func write() throws {
      let file = try small.vault.createFile(at: path, blockSizeExponent: 12)
      let number = try small.vault.attributes(at: path).number
      // Each in a page of its own.
      for page in 0..<4000 as Range<UInt64> {
        try file.write(small.generator.bytes(4096), at: page * 64 * 4096)
        let changed = try #require(small.vault.files.node(number)).dirtyPages
        try #require(changed <= 256)
      }
      try small.disk.fill()
      // What was written last may not be stored any more.
      try? file.close()
    }
    try write()
    try small.vault.remove(path)
    try small.vault.commit()
    #expect(try small.vault.space().bytesForProcess > 8 << 20)
    try small.vault.close()
  }

  @Test func `a file that is cut on a full disk can be stored, and gives room back, also while it is open`() throws {
    let small = try SmallDisk(mebibytes: 16, seed: 10)
    let path = try VaultPath("file")
    let bytes = small.generator.bytes(8 << 20)
    let file = try small.openOnFullDisk(path, bytes)
    // In the middle of a block.
    for count in [5_000_001, 1_000_001, 300_001] {
      try file.truncate(to: UInt64(count))
      try file.sync()
      #expect(try small.vault.contents(of: path) == Array(bytes[..<count]))
    }
    let free = try small.vault.space().bytesForProcess
    #expect(free > 6 << 20)
    try file.close()
    try small.vault.close()
  }

  @Test func `what a disk has no more files for is refused when it is written`() throws {
    let small = try SmallDisk(mebibytes: 48, files: 60, seed: 11)
    var stored = 0
    for number in 0..<80 {
      let path = try VaultPath("file \(number)")
      let file = try small.vault.createFile(at: path)
      let isWritten = try small.found { try file.write([UInt8](repeating: 3, count: 60_000), at: 0) }
      // Nothing that was taken is refused later.
      #expect(throws: Never.self) { try file.close() }
      if isWritten { stored += 1 } else { try small.vault.remove(path) }
    }
    try small.vault.commit()
    #expect(stored > 0 && stored < 80)
    let found = try small.vault.list(.root)
    #expect(found.count == stored)
    for entry in found { #expect(entry.attributes.byteCount == 60_000) }
    try small.vault.close()
  }

  @Test func `what was changed in place keeps nothing from being removed`() throws {
    let small = try SmallDisk(mebibytes: 64, seed: 12)
    let bytes = small.generator.bytes(200)
    let paths = try (0..<4000).map { try VaultPath("file \($0)") }
    for path in paths { try small.vault.importFile(small.fixture.source(bytes), to: path) }
    try small.vault.commit()
    try small.disk.fill()
    for path in paths { _ = try small.found { try small.vault.setAttributes(DiskRoomTests.privately, at: path) } }
    _ = try small.found { try small.vault.commit() }
    for path in paths { try small.vault.remove(path) }
    // Nothing waits for more room than there is, the log keeps little of it, and something else finds some.
    try small.vault.commit()
    let log = try FileSystem().status(of: small.disk.path + "/vault/index.sqlite-wal")?.byteCount ?? 0
    #expect(log < 4 << 20)
    try small.vault.importFile(small.fixture.source([4, 5]), to: VaultPath("last"))
    try small.vault.commit()
    small.files = ["last": [4, 5]]
    try small.check(small.vault)
    try small.vault.close()
  }

  @Test func `holes that are made on a full disk can be stored, and give room back`() throws {
    let small = try SmallDisk(mebibytes: 32, seed: 13)
    let path = try VaultPath("file")
    var bytes = small.generator.bytes(16 << 20)
    let file = try small.openOnFullDisk(path, bytes)
    for start in stride(from: 0, to: bytes.count, by: 1 << 20) {
      let hole = (start + 65_536)..<(start + 983_040)
      try file.punchHole(UInt64(hole.lowerBound)..<UInt64(hole.upperBound))
      bytes.replaceSubrange(hole, with: [UInt8](repeating: 0, count: hole.count))
    }
    try file.sync()
    #expect(try small.vault.contents(of: path) == bytes)
    #expect(try small.vault.space().bytesForProcess > 12 << 20)
    try file.close()
    try small.vault.close()
  }

  @Test func `slots that were given back are no room`() throws {
    let small = try SmallDisk(mebibytes: 64, seed: 14)
    let path = try VaultPath("file")
    let bytes = small.generator.bytes(8 << 20)
    var file = try small.vault.createFile(at: path)
    for _ in 0..<2 {
      // Every block moves, and leaves a slot that goes back to the disk when the file is closed.
      try file.write(bytes, at: 0)
      try file.sync()
    }
    try file.close()
    file = try small.vault.createFile(at: path)
    // Looks for slots that nothing uses.
    try file.write([1], at: 0)
    try file.sync()
    try small.disk.fill()
    // As it does by itself a moment later.
    small.vault.room.look()
    for block in 0..<400 { _ = try small.found { try file.write([2], at: UInt64(block * 16_384 + 100)) } }
    #expect(small.refusalCount > 0)
    // Nothing that was taken is refused later.
    #expect(throws: Never.self) { try file.sync() }
    try file.close()
    try small.vault.close()
  }

  @Test func `files that grow beside each other need one place each`() throws {
    let small = try SmallDisk(mebibytes: 160, files: 800, seed: 15)
    let files = try (0..<6).map { try small.vault.createFile(at: VaultPath("file \($0)")) }
    for offset in 0..<10 {
      for file in files { try file.write([UInt8](repeating: 4, count: 30_000), at: UInt64(30_000 * offset)) }
    }
    for file in files { try file.close() }
    try small.vault.close()
  }

  @Test func `a key store on the same disk keeps up with the vault`() throws {
    let fixture = try VaultFixture()
    let disk = try MountedDisk(in: fixture.folder, mebibytes: 16)
    let keyStore = FileKeyStore(path: disk.path + "/keys")
    let vault = try Vault.create(
      at: disk.path + "/vault", keyStore: keyStore, passcode: VaultFixture.passcode(),
      derivation: VaultFixture.derivation(), options: TestVault.options)
    for number in 0..<40 { try vault.importFile(fixture.source([1, 2]), to: VaultPath("file \(number)")) }
    try vault.commit()
    try disk.fill()
    for number in 0..<40 {
      try vault.remove(VaultPath("file \(number)"))
      try vault.commit()
    }
    try vault.close()
    let again = try Vault.open(at: disk.path + "/vault", keyStore: keyStore, passcode: { VaultFixture.passcode() })
    #expect(try again.list(.root).isEmpty && !again.isReadOnly)
    try again.close()
  }
}
