import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import Foundation
import GRDB
import Synchronization
import Testing

@testable import CofferVault

/// What a verification says of a vault, and what a backup holds.
@Suite struct VerifyTests {
  /// Every kind of thing that a vault can hold.
  private func fill(_ vault: Vault, _ fixture: VaultFixture) throws {
    var generator = SeededGenerator(seed: 11)
    try vault.makeDirectory(at: VaultPath("docs/inner"), withParents: true)
    try vault.importFile(fixture.source(generator.bytes(700)), to: VaultPath("docs/small"))
    try vault.importFile(fixture.source(generator.bytes(300_000)), to: VaultPath("docs/large"))
    let docs = try vault.lookup(Array("docs".utf8), in: .rootFolder)
    let number = docs.number
    let large = try vault.lookup(Array("large".utf8), in: number)
    try vault.link(large.number, as: Array("again".utf8), in: number)
    try vault.setExtendedAttribute(
      Array("user.note".utf8), of: large.number, to: [1, 2, 3], mode: .create)
    let sparse = try vault.createFile(at: VaultPath("docs/sparse"))
    try [UInt8](repeating: 5, count: 5000).withUnsafeBytes { bytes throws in
      try sparse.write(bytes, at: 0)
      try sparse.write(bytes, at: 3 << 40)
    }
    try sparse.close()
    try vault.setSetting("a", to: [1])
  }

  @Test func `a vault without damage is clean, and everything in it is counted`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try fill(vault, fixture)
    for isDeep in [false, true] {
      var last: VerificationProgress?
      let report = try vault.verify(isDeep: isDeep, progress: { last = $0 })
      #expect(report.isClean, "\(report.damages)")
      #expect(report.fileCount == 3)
      #expect(report.folderCount == 3)
      #expect(report.intactCount == 6)
      #expect(report.strayRecordCount == 0)
      #expect(last?.checkedBucketCount == last?.bucketCount)
      #expect(isDeep == ((last?.readByteCount ?? 0) > 300_000))
    }
  }

  /// Their objects go behind the commit that removed them, and the marks that say so behind those: 100 on a thread of its own.
  @Test(arguments: [1, 100]) func `what was removed just before leaves no strays`(count: Int) throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let bytes = [UInt8](repeating: 1, count: 70_000)
    for number in 0..<count { try vault.importFile(fixture.source(bytes), to: VaultPath("\(number)")) }
    try vault.commit()
    for number in 0..<count { try vault.remove(VaultPath("\(number)")) }
    #expect(try vault.verify(isDeep: false).strayRecordCount == 0)
    try vault.close()
  }

  @Test func `records that nothing leads to are counted`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try fill(vault, fixture)
    try vault.index.perform { session in
      for page in 0..<3 as Range<UInt64> {
        try session.set(.map, session.rowKeys.mapPage(InodeNumber(value: 1 << 40), page), [1])
      }
    }
    let report = try vault.verify(isDeep: false)
    #expect(report.isClean && report.strayRecordCount == 3)
  }

  @Test func `what changes during a verification is not counted as strays`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try fill(vault, fixture)
    let report = try vault.verify(isDeep: false) { progress in
      guard progress.checkedBucketCount == progress.bucketCount else { return }
      try? vault.remove(VaultPath("docs/sparse"))
      try? vault.setSetting("a", to: nil)
      try? vault.commit()
    }
    #expect(report.isClean && report.strayRecordCount == 0)
  }

  @Test(arguments: [false, true]) func `what a lock keeps from being read is not damaged`(isDeep: Bool) throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try fill(vault, fixture)
    vault.lock(graceSeconds: 0)
    #expect(throws: VaultError.locked) { try vault.verify(isDeep: isDeep) }
    try vault.close()
    let again = try fixture.open()
    #expect(throws: VaultError.locked) {
      try again.verify(isDeep: isDeep, progress: { if $0.checkedBucketCount > 64 { again.lock(graceSeconds: 0) } })
    }
    #expect(again.isLocked)
  }

  @Test func `a lock in the midst of a file's content ends a verification without a report`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.importFile(fixture.source([UInt8](repeating: 7, count: 5 << 20)), to: VaultPath("large"))
    var wasReading = false
    #expect(throws: VaultError.locked) {
      try vault.verify(
        isDeep: true,
        progress: {
          guard $0.readByteCount > 0, !wasReading else { return }
          wasReading = true
          vault.lock(graceSeconds: 0)
        })
    }
    #expect(wasReading)
  }

  @Test func `a damaged block is named with its file, and the rest is intact`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try fill(vault, fixture)
    try vault.close()
    let object = try #require(
      TamperTests.objects(fixture.vaultPath).max { left, right in
        try left.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
          < right.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
      })
    var bytes = try Data(contentsOf: object)
    bytes[100_000] ^= 1
    try bytes.write(to: object)
    let again = try fixture.open()
    #expect(try again.verify(isDeep: false).isClean)
    let report = try again.verify(isDeep: true)
    #expect(report.damageCount == 1)
    #expect(report.damages.first?.what == "blocks of a file's content")
    let lost = try #require(report.damages.first?.lostByteCount)
    #expect(lost > 0 && lost <= 16_384)
    let name = report.damages.first?.path?.lastName
    #expect(name == Array("large".utf8) || name == Array("again".utf8))
    #expect(report.intactCount == 5)
  }

  @Test func `rows that were taken away are found without a touch, and what they touch is named`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    for number in 0..<200 { try vault.importFile(fixture.source([1, 2]), to: VaultPath("f\(number)")) }
    try vault.close()
    try DatabaseQueue(path: fixture.vaultPath + "/index.sqlite").write { db in
      try db.execute(sql: "DELETE FROM record WHERE rowid = 150")
    }
    let again = try fixture.open()
    let report = try again.verify(isDeep: false)
    #expect(!report.isClean)
    let named = report.damages.compactMap { $0.path?.lastName }
    // The files whose records lie in the same bucket cannot be trusted either: a group of 64, by rare chance two.
    #expect((1...128).contains(named.count))
    // The root folder's record may be among them.
    let isRootDamaged = report.damages.contains { $0.path == .root }
    #expect(report.intactCount == UInt64(201 - named.count - (isRootDamaged ? 1 : 0)))
    #expect(report.damages.allSatisfy { !$0.what.contains("f1") })
  }

  @Test func `a backup of a vault in use is the vault at one moment`() async throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try fill(vault, fixture)
    // Two blocks that always hold the same number, changed while the backup runs.
    let pair = try vault.createFile(at: VaultPath("pair"), blockSizeExponent: 12)
    func write(_ value: UInt8) throws {
      try [UInt8](repeating: value, count: 8192).withUnsafeBytes { bytes throws in try pair.write(bytes, at: 0) }
      try pair.sync()
    }
    try write(0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for round in 1...60 {
          try write(UInt8(round))
          try vault.importFile(fixture.source([1, 2, 3]), to: VaultPath("new\(round)"))
          let temporary = try vault.createFile(at: VaultPath("temporary"))
          try [UInt8](repeating: 9, count: 50_000).withUnsafeBytes { bytes throws in try temporary.write(bytes, at: 0) }
          try temporary.sync()
          try temporary.close()
          try vault.remove(VaultPath("temporary"))
          try vault.commit()
        }
      }
      group.addTask { for number in 0..<4 { try vault.backup(to: fixture.folder("backup\(number)")) } }
      try await group.waitForAll()
    }
    try pair.close()
    try vault.close()
    for number in 0..<4 {
      // A copy of the key store, as of a device that has seen nothing newer, and that accepts what it finds.
      var options = VaultOptions()
      options.acceptsOlderState = true
      let keys = fixture.folder("keys\(number)")
      try FileManager.default.copyItem(atPath: fixture.folder("keys"), toPath: keys)
      let copy = try Vault.open(
        at: fixture.folder("backup\(number)"), keyStore: FileKeyStore(path: keys),
        passcode: { VaultFixture.passcode() }, options: options)
      let report = try copy.verify(isDeep: true)
      #expect(report.isClean, "\(report.damages)")
      let bytes = try copy.contents(of: VaultPath("pair"))
      #expect(bytes.count == 8192 && Set(bytes).count == 1)
      #expect(try copy.contents(of: VaultPath("docs/large")).count == 300_000)
      try copy.close()
    }
  }

  @Test func `a backup goes to an empty place only, and a cancelled one leaves nothing`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try fill(vault, fixture)
    let path = fixture.folder("backup")
    #expect(throws: VaultError.cancelled) {
      try vault.backup(to: path, control: TransferControl(isCancelled: { true }))
    }
    #expect(!FileManager.default.fileExists(atPath: path))
    try vault.backup(to: path)
    #expect(throws: VaultError.folderNotEmpty) { try vault.backup(to: path) }
    #expect(throws: VaultError.folderNotEmpty) { try vault.backup(to: fixture.vaultPath) }
  }

  /// A program that works in a vault until it is told to end.
  private final class Worker: Sendable {
    let isOver = Atomic(false)
    /// Signalled behind the first round, or where it failed.
    let hasBegun = DispatchSemaphore(value: 0)
    let hasEnded = DispatchSemaphore(value: 0)
    let rounds = Atomic(0)
    let failure = Mutex<(any Error)?>(nil)

    func work(in vault: Vault, seed: UInt64) {
      do {
        var generator = SeededGenerator(seed: seed)
        // Without a name, and written to all the time.
        let nameless = try vault.createFile(at: VaultPath("one/nameless"))
        try vault.remove(VaultPath("one/nameless"))
        while !isOver.load(ordering: .relaxed) {
          try work(in: vault, round: rounds.load(ordering: .relaxed), nameless, &generator)
          if rounds.wrappingAdd(1, ordering: .relaxed).oldValue == 0 { hasBegun.signal() }
        }
        try nameless.close()
      } catch {
        failure.withLock { $0 = error }
        hasBegun.signal()
      }
      hasEnded.signal()
    }

    private func work(
      in vault: Vault, round: Int, _ nameless: OpenFile, _ generator: inout SeededGenerator
    ) throws {
      let (name, link) = ("one/new\(round)", "two/link\(round)")
      let file = try vault.createFile(at: VaultPath(name))
      let count = Int.random(in: 1...400_000, using: &generator)
      try [UInt8](repeating: 9, count: count).withUnsafeBytes { bytes throws in try file.write(bytes, at: 0) }
      if Bool.random(using: &generator) { try file.sync() }
      try vault.link(VaultPath(name), to: VaultPath(link))
      if Bool.random(using: &generator) { try file.truncate(to: UInt64.random(in: 0...900_000, using: &generator)) }
      try file.close()
      try vault.makeDirectory(at: VaultPath("one/folder\(round)"))
      try vault.rename(VaultPath(name), to: VaultPath("one/folder\(round)/moved"))
      try vault.rename(VaultPath("one/folder\(round)"), to: VaultPath("two/folder\(round)"))
      if Bool.random(using: &generator) { try vault.commit() }
      try vault.removeRecursively(VaultPath("two/folder\(round)"))
      let two = try vault.lookup(Array("two".utf8), in: .rootFolder).number
      let number = try vault.lookup(Array("link\(round)".utf8), in: two).number
      for value in 0..<UInt8(4) {
        try vault.setExtendedAttribute(Array("user.\(value)".utf8), of: number, to: [value], mode: .create)
      }
      try vault.remove(VaultPath(link))
      try [UInt8](repeating: 3, count: 70_000).withUnsafeBytes { bytes throws in
        try nameless.write(bytes, at: UInt64(round % 64) << 16)
      }
      if round % 64 == 63 { try nameless.truncate(to: 300_000) }
      try nameless.sync()
    }
  }

  @Test func `what comes, goes, moves and changes meanwhile is not damaged`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try fill(vault, fixture)
    for name in ["one", "two"] { try vault.makeDirectory(at: VaultPath(name)) }
    for number in 0..<40 { try vault.importFile(fixture.source([1, 2]), to: VaultPath("one/still\(number)")) }
    let (worker, seed) = (Worker(), UInt64.random(in: 0...UInt64.max))
    Thread.detachNewThread { worker.work(in: vault, seed: seed) }
    worker.hasBegun.wait()
    for round in 0..<20 {
      let report = try vault.verify(isDeep: round.isMultiple(of: 3))
      #expect(report.isClean, "seed \(seed): \(report.damages.map(\.what))")
    }
    worker.isOver.store(true, ordering: .relaxed)
    worker.hasEnded.wait()
    #expect(worker.failure.withLock { $0 } == nil)
    let report = try vault.verify(isDeep: true)
    #expect(report.isClean && report.fileCount == 43, "\(report.damages)")
  }

  @Test func `files of which neither content nor all names are found are not counted as intact, nor twice`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.makeDirectory(at: VaultPath("folder"))
    for name in ["a", "b"] {
      try vault.importFile(fixture.source([UInt8](repeating: 7, count: 100_000)), to: VaultPath(name))
      try vault.link(VaultPath(name), to: VaultPath("folder/\(name)"))
    }
    try vault.close()
    for object in try TamperTests.objects(fixture.vaultPath) { try FileManager.default.removeItem(at: object) }
    // The folder's names: the root folder has three.
    try DatabaseQueue(path: fixture.vaultPath + "/index.sqlite").write { db in
      try db.execute(
        sql: """
          DELETE FROM entry WHERE substr(key, 1, 8) IN
            (SELECT substr(key, 1, 8) FROM entry GROUP BY substr(key, 1, 8) HAVING count(*) = 2)
          """)
      #expect(db.changesCount == 2)
    }
    let report = try fixture.open().verify(isDeep: false)
    #expect(!report.isClean && report.intactCount <= 2)
  }

  @Test func `a backup that fails leaves what others have put there`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try fill(vault, fixture)
    let path = fixture.folder("backup")
    let manager = FileManager.default
    try manager.createDirectory(atPath: path, withIntermediateDirectories: false)
    let isThere = Atomic(false)
    let control = TransferControl(
      progress: { _ in
        guard !isThere.exchange(true, ordering: .relaxed) else { return }
        try? manager.createDirectory(atPath: path + "/photos", withIntermediateDirectories: false)
        _ = manager.createFile(atPath: path + "/photos/one", contents: Data([1]))
        _ = manager.createFile(atPath: path + "/keys", contents: Data([2]))
      }, isCancelled: { isThere.load(ordering: .relaxed) })
    #expect(throws: VaultError.cancelled) { try vault.backup(to: path, control: control) }
    #expect(try manager.subpathsOfDirectory(atPath: path).sorted() == ["keys", "photos", "photos/one"])
  }

  @Test func `a backup copies no more of a file than there was`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.importFile(fixture.source([UInt8](repeating: 7, count: 3 << 20)), to: VaultPath("file"))
    try vault.commit()
    let object = try #require(TamperTests.objects(fixture.vaultPath).first)
    let before = try #require(try object.resourceValues(forKeys: [.fileSizeKey]).fileSize)
    let parts = Atomic(0)
    // Whoever writes as fast as it is copied.
    let control = TransferControl(progress: { _ in
      guard parts.wrappingAdd(1, ordering: .relaxed).oldValue < 50, let file = try? FileHandle(forWritingTo: object)
      else {
        return
      }
      _ = try? file.seekToEnd()
      try? file.write(contentsOf: Data(repeating: 1, count: 1 << 20))
    })
    try vault.backup(to: fixture.folder("backup"), control: control)
    #expect(parts.load(ordering: .relaxed) > 2)
    let copy = try #require(TamperTests.objects(fixture.folder("backup")).first)
    #expect(try copy.resourceValues(forKeys: [.fileSizeKey]).fileSize == before)
  }

  @Test func `a description that somebody has changed goes into no backup`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let description = URL(fileURLWithPath: fixture.vaultPath + "/coffer.json")
    let bytes = try Data(contentsOf: description)
    try (bytes + Data(" ".utf8)).write(to: description)
    #expect(throws: VaultError.self) { try vault.backup(to: fixture.folder("backup")) }
    #expect(!FileManager.default.fileExists(atPath: fixture.folder("backup")))
    try bytes.write(to: description)
    try vault.backup(to: fixture.folder("backup"))
  }
}
