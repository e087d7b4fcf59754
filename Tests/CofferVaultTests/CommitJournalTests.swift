import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Glibc
import Synchronization
import Testing

@testable import CofferVault

/// Small commits that are durable before SQLite has them.
@Suite struct CommitJournalTests {
  private static func journal(_ vaultPath: String) throws -> [UInt8] {
    try Array(Data(contentsOf: URL(filePath: vaultPath + "/" + VaultFormat.journal)))
  }

  private static func store(_ bytes: [UInt8], _ vaultPath: String) throws {
    try Data(bytes).write(to: URL(filePath: vaultPath + "/" + VaultFormat.journal))
  }

  private static func hasJournal(_ vaultPath: String) -> Bool {
    FileManager.default.fileExists(atPath: vaultPath + "/" + VaultFormat.journal)
  }

  private static func state(_ vault: Vault) throws -> ExpectedVault { try ExpectedVault(reading: vault) }

  @Test func `a crash loses no commit of the journal, and closing leaves none behind`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.createJournaled()
    let expected = try Self.state(vault)
    // Of three files each, one new: less than a root has.
    let count = try Self.journal(fixture.vaultPath).count
    #expect(count > 6 * 1000 && count < 6 * 5000, "\(count)")
    try fixture.copyAsAfterCrash()
    let crashed = try fixture.openAfterCrash()
    #expect(try Self.state(crashed) == expected)
    #expect(crashed.committedRoot == vault.committedRoot)
    #expect(try crashed.verify(isDeep: true).isClean)
    // Before it has a salt of its own.
    try crashed.backup(to: fixture.folder("backup"))
    let copy = try Vault.open(
      at: fixture.folder("backup"), keyStore: fixture.keyStore, passcode: { VaultFixture.passcode() })
    #expect(copy.committedRoot == vault.committedRoot)
    #expect(try copy.verify(isDeep: true).isClean)
    try copy.close()
    // What was only read is where it was.
    try crashed.close()
    #expect(try Self.journal(fixture.folder("crashed/vault")) == Self.journal(fixture.vaultPath))

    let again = try fixture.openAfterCrash()
    again.index.tables.changeRules { $0.commitsBeforeJournal = 1 }
    for number in 6..<12 { try again.commitSmall(number) }
    for number in 6..<12 { try vault.commitSmall(number) }
    #expect(try Self.names(again) == Self.names(vault))
    for vault in [again, vault] { try vault.close() }
    #expect(!Self.hasJournal(fixture.vaultPath) && !Self.hasJournal(fixture.folder("crashed/vault")))
    let opened = try fixture.open()
    #expect(try opened.verify(isDeep: true).isClean)
    #expect(try Self.names(opened) == ["file-10", "file-11"])
    try opened.close()
  }

  private static func names(_ vault: Vault) throws -> [String] {
    try (0..<8).flatMap { try vault.list(VaultPath("stored-\($0)")) }.map { String(decoding: $0.name, as: UTF8.self) }
      .sorted()
  }

  /// The journal has of each root what its commit changed: put together they are the last commit's, whether its buckets stand in
  /// the root, or in pages, or go from one to the other.
  @Test(arguments: [0, 3, 8, RootRecord.bucketLimit])
  func `the changes of the root lead to the last commit's`(_ heldBucketLimit: Int) throws {
    let fixture = try VaultFixture()
    let vault = try fixture.createJournaled(commits: 0)
    vault.index.read { $0.heldBucketLimit = heldBucketLimit }
    var sealedPages = 0
    var commits: Set<[UInt8]> = []
    for number in 0..<12 {
      let before = vault.committedRoot
      try vault.commitSmall(number)
      let root = vault.committedRoot
      commits.insert(root.commit)
      sealedPages += (0..<RootRecord.pageCount).count { root.pageTag($0) != before.pageTag($0) }
      // Each looking opens the vault and reads all of it.
      if number < 6 || number == 11 { try fixture.expectSameAfterCrash(vault) }
    }
    #expect(commits.count == 12, "each has a name of its own")
    #expect((sealedPages > 0) == (heldBucketLimit < RootRecord.bucketLimit))
    let last = vault.committedRoot
    #expect(try vault.verify(isDeep: false).isClean)
    // And as SQLite has it.
    try fixture.copyAsAfterCrash()
    try FileManager.default.removeItem(atPath: fixture.folder("crashed/vault/journal"))
    let stored = try fixture.openAfterCrash()
    #expect(stored.committedRoot == last)
    #expect(!stored.isReadOnly)
    try stored.close()
    try vault.close()
  }

  @Test func `a program's few commits make no journal`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    for number in 0..<4 {
      try vault.makeDirectory(at: VaultPath("folder-\(number)"))
      try vault.commit()
      #expect(!Self.hasJournal(fixture.vaultPath))
    }
    try vault.makeDirectory(at: VaultPath("last"))
    try vault.commit()
    #expect(Self.hasJournal(fixture.vaultPath))
    try vault.close()
  }

  /// Commits small and large, openings and crashes: whatever is in SQLite or in the journal, every row is found and counted.
  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func `what is read is the journal's word over SQLite's`(_ seed: UInt64) throws {
    let fixture = try VaultFixture()
    var generator = SeededGenerator(seed: seed)
    func number(_ count: Int) -> Int { .random(in: 0..<count, using: &generator) }
    var vault = try fixture.create()
    var expected: [String: [UInt8]] = [:]
    var passCount = 0
    var sizes: [Int] = []
    for step in 0..<max(40, Effort.scaled(160)) {
      vault.index.tables.changeRules { $0.commitsBeforeJournal = 1 }
      let count = number(12) == 0 ? 80 : 1 + number(3)
      for _ in 0..<count {
        let name = "\(number(60))"
        switch (expected[name], number(3)) {
        case (.some, 0):
          try vault.remove(VaultPath(name))
          expected[name] = nil
        case (let old?, _):
          let bytes = generator.bytes(1 + number(3000))
          let file = try vault.open(VaultPath(name), .writing)
          try file.write(bytes, at: 0)
          try file.close()
          expected[name] = bytes + old.dropFirst(bytes.count)
        case (nil, _):
          let bytes = generator.bytes(1 + number(3000))
          let file = try vault.createFile(at: VaultPath(name))
          try file.write(bytes, at: 0)
          try file.close()
          expected[name] = bytes
        }
      }
      try vault.commit()
      let size = (try? Self.journal(fixture.vaultPath).count) ?? 0
      if let last = sizes.last, size == last, size > 0 { passCount += 1 }
      sizes.append(size)
      switch number(10) {
      case 0:
        try vault.close()
        vault = try fixture.open()
      case 1:
        // As after a crash, with what was there: the copy takes the vault's place.
        try fixture.copyAsAfterCrash()
        let root = vault.committedRoot
        defer { #expect(vault.committedRoot == root, "step \(step)") }
        try vault.close()
        for name in ["vault", "keys"] {
          try FileManager.default.removeItem(atPath: fixture.folder(name))
          try FileManager.default.moveItem(atPath: fixture.folder("crashed/\(name)"), toPath: fixture.folder(name))
        }
        try FileManager.default.removeItem(atPath: fixture.folder("crashed"))
        vault = try fixture.open()
      case 2: vault.index.read { $0.forgetOpened() }
      case 3:
        let report = try vault.verify(isDeep: true)
        #expect(report.isClean && report.strayRecordCount == 0, "step \(step)")
      default: break
      }
      let listed = try vault.list(.root).map { String(decoding: $0.name, as: UTF8.self) }
      #expect(Set(listed) == Set(expected.keys), "step \(step)")
      if let (name, bytes) = expected.randomElement(using: &generator) {
        #expect(try vault.contents(of: VaultPath(name)) == bytes, "step \(step)")
      }
    }
    for (name, bytes) in expected { #expect(try vault.contents(of: VaultPath(name)) == bytes) }
    try vault.close()
  }

  // MARK: What others do to it

  /// Each change leaves a state that was durable once; where it is not the newest, the vault can only be read.
  @Test func `a journal that somebody changes is the newest state, or an older one that is told`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    vault.index.tables.changeRules { $0.commitsBeforeJournal = 1 }
    for number in 0..<8 { try vault.makeDirectory(at: VaultPath("stored-\(number)")) }
    try vault.commit()
    var states = [try Self.state(vault)]
    var ends = [0]
    for number in 0..<5 {
      try vault.commitSmall(number)
      states.append(try Self.state(vault))
      ends.append(try Self.journal(fixture.vaultPath).count)
    }
    // With the anchor of the newest state.
    try fixture.copyAsAfterCrash()
    try vault.close()
    try FileManager.default.removeItem(atPath: fixture.folder("crashed/keys"))
    try FileManager.default.copyItem(atPath: fixture.folder("keys"), toPath: fixture.folder("crashed/keys"))
    let path = fixture.folder("crashed/vault")
    let whole = try Self.journal(path)
    #expect(whole.count == ends[5])
    var verified: Set<Int> = []
    /// The number of the state that is found, which must be older than the newest one. What lies behind it in the journal differs,
    /// and is in no row: each state is verified once.
    func found(_ bytes: [UInt8]?) throws -> Int? {
      if let bytes {
        try Self.store(bytes, path)
      } else {
        try FileManager.default.removeItem(atPath: path + "/journal")
      }
      let opened = try fixture.openAfterCrash()
      defer { try? opened.close() }
      let state = try Self.state(opened)
      let number = try #require(states.firstIndex(of: state))
      if verified.insert(number).inserted { #expect(try opened.verify(isDeep: true).isClean) }
      #expect(opened.isReadOnly == (number < 5))
      return number
    }
    #expect(try found(whole) == 5)
    // Bytes of each entry: its length, its nonce, what is sealed, its tag.
    for entry in 0..<5 {
      let (start, end) = (entry == 0 ? 48 : ends[entry], ends[entry + 1])
      for place in [start, start + 3, start + 4, start + 16, (start + end) / 2, end - 1] {
        var changed = whole
        changed[place] ^= 1
        #expect(try found(changed) == entry, "entry \(entry), byte \(place - start)")
      }
      #expect(try found(Array(whole[..<(end - 1)])) == entry)
      #expect(try found(Array(whole[..<start])) == entry)
      // Taken out, twice, and in another order: what does not follow its commit is no entry.
      #expect(try found(Array(whole[..<start] + whole[end...])) == entry)
      #expect(try found(Array(whole[..<end] + whole[start..<end] + whole[end...])) == entry + 1)
    }
    // Its salt, and what it begins with.
    for place in [0, 31, 32, 47] {
      var changed = whole
      changed[place] ^= 1
      #expect(try found(changed) == 0)
    }
    #expect(try found([UInt8](repeating: 0xff, count: CommitJournal.byteCount)) == 0)
    #expect(try found([]) == 0)
    #expect(try found(nil) == 0)
    for count in [100, CommitJournal.byteCount] {
      #expect(try found(whole + [UInt8](repeating: 0xff, count: count)) == 5)
    }

    // What is no journal at all is none.
    #expect(try found([UInt8](repeating: 0, count: CommitJournal.byteCount + 1)) == 0)
    func found(_ make: (String) throws -> Void) throws -> Int? {
      let journal = path + "/journal"
      try? FileManager.default.removeItem(atPath: journal)
      try make(journal)
      let opened = try fixture.openAfterCrash()
      defer { try? opened.close() }
      #expect(opened.isReadOnly)
      let state = try Self.state(opened)
      return states.firstIndex(of: state)
    }
    #expect(try found { try FileManager.default.createDirectory(atPath: $0, withIntermediateDirectories: false) } == 0)
    #expect(
      try found { try FileManager.default.createSymbolicLink(atPath: $0, withDestinationPath: "coffer.json") } == 0)
    #expect(try found { if mkfifo($0, 0o600) != 0 { throw SystemError(code: errno, call: "mkfifo") } } == 0)
  }

  /// SQLite may have a part of what is in the journal: entries go there one by one where little room is left, and a transaction
  /// that was told to have failed may have been stored.
  @Test func `a journal of which SQLite has a part leads on from there`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.createJournaled(commits: 0)
    // A backup has an index of that very state.
    try vault.backup(to: fixture.folder("backup-0"))
    for number in 0..<6 {
      try vault.commitSmall(number)
      try vault.backup(to: fixture.folder("backup-\(number + 1)"))
    }
    let expected = try Self.state(vault)
    let journal = try Self.journal(fixture.vaultPath)
    try fixture.copyAsAfterCrash()
    try vault.close()
    let path = fixture.folder("crashed/vault")
    for number in 0...6 {
      for file in ["index.sqlite", "index.sqlite-wal"] {
        try? FileManager.default.removeItem(atPath: path + "/" + file)
      }
      try FileManager.default.copyItem(
        atPath: fixture.folder("backup-\(number)/index.sqlite"), toPath: path + "/index.sqlite")
      try Self.store(journal, path)
      let opened = try fixture.openAfterCrash()
      #expect(!opened.isReadOnly)
      #expect(try Self.state(opened) == expected, "\(number)")
      #expect(try opened.verify(isDeep: true).isClean)
      try opened.close()
    }
    // And goes on from there.
    try Self.store(journal, path)
    let opened = try fixture.openAfterCrash()
    opened.index.tables.changeRules { $0.commitsBeforeJournal = 0 }
    try opened.commitSmall(6)
    #expect(try opened.verify(isDeep: true).isClean)
    try opened.close()
  }

  @Test func `after a failure to bring the journal to SQLite nothing more is written, and nothing is lost`() throws {
    let fixture = try VaultFixture()
    let recorder = try StorageRecorder(recording: URL(filePath: fixture.folder("")).resolvingSymlinksInPath().path)
    let vault = try fixture.createJournaled()
    let expected = try Self.state(vault)
    recorder.failsSyncs.store(true, ordering: .relaxed)
    #expect(throws: (any Error).self) { try vault.verify(isDeep: false) }
    recorder.failsSyncs.store(false, ordering: .relaxed)
    try vault.makeDirectory(at: VaultPath("more"))
    #expect(throws: VaultError.needsReopening) { try vault.commit() }
    try fixture.copyAsAfterCrash()
    let crashed = try fixture.openAfterCrash()
    #expect(!crashed.isReadOnly)
    #expect(try Self.state(crashed) == expected)
    try crashed.close()
    try? vault.close()
    let opened = try fixture.open()
    #expect(try Self.state(opened) == expected)
    #expect(try opened.verify(isDeep: true).isClean)
    try opened.close()
  }

  @Test func `an earlier journal, or another vault's, means nothing`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.createJournaled()
    let earlier = try Self.journal(fixture.vaultPath)
    try vault.close()
    let other = try VaultFixture()
    let another = try other.createJournaled()
    let foreign = try Self.journal(other.vaultPath)
    for journal in [earlier, foreign] {
      try Self.store(journal, fixture.vaultPath)
      let opened = try fixture.open()
      #expect(!opened.isReadOnly)
      #expect(try Self.names(opened) == ["file-4", "file-5"])
      // The next pass takes its place.
      opened.index.tables.changeRules { $0.commitsBeforeJournal = 1 }
      for number in 6..<9 { try opened.commitSmall(number) }
      for number in 7..<9 { try opened.remove(VaultPath("stored-\(number % 8)/file-\(number)")) }
      for number in 4..<6 {
        let file = try opened.createFile(at: VaultPath("stored-\(number)/file-\(number)"), exclusive: true)
        try file.close()
      }
      try opened.commit()
      try opened.close()
    }
    try another.close()
  }

  // MARK: What fails

  /// Fails calls of one kind while it is told so.
  private final class Failing: FaultPlan {
    private let state = Mutex<(calls: Set<SystemCall>, code: CInt, left: Int)>(([], 0, 0))

    func set(_ calls: Set<SystemCall>, code: CInt = 0, count: Int = .max) {
      state.withLock { $0 = (calls, code, count) }
    }

    var left: Int { state.withLock { $0.left } }

    func willCall(_ call: SystemCall) throws(SystemError) {
      let code = state.withLock { state -> CInt? in
        guard state.calls.contains(call), state.left > 0 else { return nil }
        state.left -= 1
        return state.code
      }
      if let code { throw SystemError(code: code, call: call.rawValue) }
    }
  }

  @Test(arguments: [SystemCall.open, .write, .sync], [ENOSPC, EIO])
  func `a commit that finds no place in the journal goes where it went before`(_ call: SystemCall, _ code: CInt) throws
  {
    let fixture = try VaultFixture()
    let faults = Failing()
    let vault = try fixture.createJournaled(files: FileSystem(faults: faults), commits: call == .open ? 0 : 3)
    let commits = call == .open ? 0..<3 : 3..<6
    for number in commits {
      faults.set([call], code: code, count: 1)
      try vault.commitSmall(number)
      // It stays open once it was opened.
      #expect(faults.left == 0 || (call == .open && number > 0))
      faults.set([])
      try vault.makeDirectory(at: VaultPath("after-\(number)"))
      try vault.commit()
    }
    try fixture.expectSameAfterCrash(vault)
    try vault.close()
  }

  @Test func `where nobody knows whether an entry is there, nothing more is written`() throws {
    let fixture = try VaultFixture()
    let faults = Failing()
    let vault = try fixture.createJournaled(files: FileSystem(faults: faults))
    let before = try Self.state(vault)
    try vault.makeDirectory(at: VaultPath("more"))
    let after = try Self.state(vault)
    // Not its sync, and not that of its taking back: a full disk would be tried again.
    faults.set([.sync], code: ENOSPC)
    #expect(throws: VaultError.system(SystemError(code: EIO, call: "fsync"))) { try vault.commit() }
    faults.set([])
    #expect(throws: VaultError.needsReopening) { try vault.makeDirectory(at: VaultPath("again")) }
    try? vault.close()
    let opened = try fixture.open()
    let state = try Self.state(opened)
    #expect(state == before || state == after)
    try opened.close()
  }

  @Test func `a backup has what is in the journal, and changes nothing there`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.createJournaled()
    let before = try Self.journal(fixture.vaultPath)
    try vault.backup(to: fixture.folder("backup"))
    #expect(try Self.journal(fixture.vaultPath) == before)
    #expect(!Self.hasJournal(fixture.folder("backup")))
    let expected = try Self.state(vault)
    try vault.close()
    let copy = try Vault.open(
      at: fixture.folder("backup"), keyStore: fixture.keyStore, passcode: { VaultFixture.passcode() })
    #expect(try Self.state(copy) == expected)
    #expect(try copy.verify(isDeep: true).isClean)
    try copy.close()
  }
}
