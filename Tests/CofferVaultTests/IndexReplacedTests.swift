import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import GRDB
import Synchronization
import Testing

@testable import CofferVault

/// Somebody who can write to the index's files changes them while it is open.
@Suite(.timeLimit(.minutes(5))) struct IndexReplacedTests {
  private static func indexPath(_ fixture: VaultFixture) -> String { fixture.vaultPath + "/" + VaultFormat.index }

  /// As a program does that keeps folders of several devices the same.
  private static func replaceIndex(_ fixture: VaultFixture) throws {
    let files = FileManager.default
    try files.copyItem(atPath: indexPath(fixture), toPath: fixture.folder("twin"))
    try files.removeItem(atPath: indexPath(fixture))
    try files.moveItem(atPath: fixture.folder("twin"), toPath: indexPath(fixture))
  }

  private static func expectRefused(_ name: String, _ vault: Vault) throws {
    try vault.createFile(at: VaultPath(name)).close()
    #expect(throws: VaultError.damaged(what: "its index was removed or replaced while it was open")) {
      try vault.commit()
    }
  }

  /// Once the vault is closed, which may fail for what it was refused.
  private static func expectKept(_ name: String, _ vault: Vault, _ fixture: VaultFixture) throws {
    try? vault.close()
    let again = try fixture.open()
    #expect(try again.attributes(at: VaultPath(name)).byteCount == 0)
    #expect(try again.verify(isDeep: true).isClean)
    try again.close()
  }

  /// - Parameters:
  ///   - commitsBeforeJournal: as of ``IndexTables``: none, or so many that all commits go to SQLite.
  ///   - goesOn: something else is to be stored before the vault is closed.
  @Test(arguments: [0, Int.max], [false, true])
  func `an index that was replaced by its like takes nothing more, and loses nothing`(
    _ commitsBeforeJournal: Int, goesOn: Bool
  ) throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let tables = vault.index.tables
    tables.changeRules { $0.commitsBeforeJournal = commitsBeforeJournal }
    // The first brings the opening's salt, and goes to SQLite.
    for name in ["first", "before"] {
      try vault.createFile(at: VaultPath(name)).close()
      try vault.commit()
    }
    try Self.replaceIndex(fixture)
    tables.readers.want()
    #expect(!tables.readers.use { _ in }, "a connection to another file")
    vault.index.read { session in
      session.remember(nil)
      session.stored.forgetVerified { _ in false }
    }
    #expect(try vault.attributes(at: VaultPath("before")).byteCount == 0)
    if goesOn {
      try Self.expectRefused("after", vault)
    }
    try Self.expectKept("before", vault, fixture)
  }

  @Test func `what waits in a journal that somebody has removed is stored elsewhere`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    vault.index.tables.changeRules { $0.commitsBeforeJournal = 0 }
    for name in ["first", "second", "third", "fourth"] {
      let journal = fixture.vaultPath + "/" + VaultFormat.journal
      if name == "third" { try FileManager.default.removeItem(atPath: journal) }
      try vault.createFile(at: VaultPath(name)).close()
      try vault.commit()
    }
    try fixture.copyAsAfterCrash()
    try vault.close()
    let crashed = try fixture.openAfterCrash()
    for name in ["first", "second", "third", "fourth"] {
      #expect(try crashed.attributes(at: VaultPath(name)).byteCount == 0)
    }
    #expect(try crashed.verify(isDeep: true).isClean)
    try crashed.close()
  }

  @Test func `an index whose log was removed takes nothing more, and keeps what it had when it is closed`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    vault.index.tables.changeRules { $0.commitsBeforeJournal = .max }
    try vault.createFile(at: VaultPath("before")).close()
    try vault.commit()
    try FileManager.default.removeItem(atPath: fixture.vaultPath + "/" + VaultFormat.indexLog)
    try Self.expectRefused("after", vault)
    try Self.expectKept("before", vault, fixture)
  }

  @Test func `connections of one index, and only these, have its identity`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let path = Self.indexPath(fixture)
    func identity(_ queue: DatabaseQueue) throws -> IndexDatabase.Identity {
      try queue.inDatabase { try IndexDatabase.Identity($0) }
    }
    let first = try IndexDatabase.openReader(at: path, .little)
    let second = try IndexDatabase.openReader(at: path, .little)
    #expect(try identity(first) == identity(second))
    try Self.replaceIndex(fixture)
    let other = try IndexDatabase.openReader(at: path, .little)
    #expect(try identity(first) != identity(other))
    for queue in [first, second, other] { try queue.close() }
    try? vault.close()
  }

  /// What stores the journal's rows in a copy would run what the copy's schema says. The cookie stays, so that nobody else sees it.
  ///
  /// - Parameter isAlone: with the index's own connection.
  @Test(arguments: [false, true]) func `no copy is made with another schema`(isAlone: Bool) throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let tables = vault.index.tables
    tables.keepsLogShort.store(isAlone, ordering: .relaxed)
    _ = try vault.index.copy(to: fixture.folder("intact")) { false }
    tables.using { _ in tables.emptyLog(growingBy: .max) }
    vault.index.remember(nil)
    let path = URL(fileURLWithPath: Self.indexPath(fixture))
    let salt = Data("CREATE TABLE salt(id INTEGER PRIMARY KEY, value".utf8)
    let place = try #require(try Data(contentsOf: path).range(of: salt))
    let index = try FileHandle(forUpdating: path)
    try index.seek(toOffset: UInt64(place.upperBound - 1))
    try index.write(contentsOf: [UInt8(ascii: "E")])
    #expect(throws: VaultError.damaged(what: "the index's schema")) {
      _ = try vault.index.copy(to: fixture.folder("changed")) { false }
    }
    try index.seek(toOffset: UInt64(place.upperBound - 1))
    try index.write(contentsOf: [UInt8(ascii: "e")])
    try index.close()
    vault.index.remember(nil)
    _ = try vault.index.copy(to: fixture.folder("again")) { false }
    try vault.close()
  }

  /// What it is compiled to would be up to who has changed the schema.
  @Test func `nothing is compiled again where the schema is said to be another`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let tables = vault.index.tables
    try vault.createFile(at: VaultPath("file")).close()
    try vault.commit()
    tables.readers.want()
    func readRoots() -> [VaultError?] {
      func failure(_ reader: RowReader) -> VaultError? {
        do {
          _ = try reader.root()
          return nil
        } catch { return .wrapping(error) }
      }
      // With nothing in their memory.
      vault.index.remember(nil)
      tables.readers.want()
      var failures: [VaultError?] = []
      tables.using { failures.append(failure($0)) }
      #expect(tables.readers.use { failures.append(failure($0)) })
      return failures
    }
    #expect(readRoots() == [nil, nil])
    tables.using { _ in tables.emptyLog(growingBy: .max) }
    // The schema's cookie: section 1.3.9 of SQLite's file format.
    let index = try FileHandle(forUpdating: URL(fileURLWithPath: Self.indexPath(fixture)))
    func changeCookie() throws {
      try index.seek(toOffset: 43)
      let byte = try #require(try index.read(upToCount: 1)?.first)
      try index.seek(toOffset: 43)
      try index.write(contentsOf: [byte ^ 1])
    }
    try changeCookie()
    #expect(readRoots() == [.damaged(what: "the index"), .damaged(what: "the index")])
    #expect(throws: VaultError.damaged(what: "the index")) { _ = try vault.attributes(at: VaultPath("file")) }
    try? vault.close()
    try changeCookie()
    try index.close()
    let again = try fixture.open()
    #expect(try again.verify(isDeep: true).isClean)
    try again.close()
  }
}
