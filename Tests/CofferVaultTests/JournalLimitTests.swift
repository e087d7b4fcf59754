import CofferFiles
import CofferTestSupport
import Foundation
import Testing

@testable import CofferVault

/// What a journal holds at most, and what lies behind that.
@Suite struct JournalLimitTests {
  @Test func `a full journal goes to SQLite, and its place is used again`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.createJournaled(commits: 0)
    let journal = try #require(vault.index.tables.journal)
    var longest = 0
    var passes: [Int] = []
    var (count, entry) = (0, 0)
    for number in 0..<80 {
      let room = journal.room
      // The journal is as long as it gets, and SQLite has nothing of it.
      if room < entry { try fixture.expectSameAfterCrash(vault) }
      for part in 0..<3 {
        let file = try vault.createFile(at: VaultPath("stored-\(number % 8)/\(number)-\(part)"))
        try file.write([UInt8](repeating: UInt8(number), count: 4000), at: 0)
        try file.close()
      }
      try vault.commit()
      longest = max(longest, try Data(contentsOf: URL(filePath: fixture.vaultPath + "/" + VaultFormat.journal)).count)
      if journal.room < room {
        (count, entry) = (count + 1, room - journal.room)
      } else {
        #expect(room < entry)
        passes.append(count)
        count = 0
        try fixture.expectSameAfterCrash(vault)
      }
    }
    #expect(longest <= CommitJournal.byteCount && longest > CommitJournal.byteCount * 9 / 10)
    // By its length, and not by their number.
    #expect(passes.count > 3 && passes.allSatisfy { $0 < CommitJournal.entryLimit - 1 }, "\(passes)")
    try vault.close()
  }

  @Test func `a journal of very small commits goes to SQLite before they are many`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.createJournaled(commits: 0)
    let journal = try #require(vault.index.tables.journal)
    func commit(_ name: String) throws {
      try vault.makeDirectory(at: VaultPath(name))
      try vault.commit()
    }
    for pass in 0..<2 {
      for number in 1...CommitJournal.entryLimit {
        try commit("\(pass)-\(number)")
        #expect((journal.room == 0) == (number == CommitJournal.entryLimit))
      }
      try fixture.expectSameAfterCrash(vault)
      // The next takes all of it along.
      try commit("\(pass)-last")
      #expect(journal.room > CommitJournal.byteCount - 100)
    }
    try commit("last")
    try fixture.expectSameAfterCrash(vault)
    try vault.close()
  }

  /// Somebody has put a file in its place that no journal could be. What is synced then is there after a crash all the same.
  @Test func `a file that is too long in the journal's place loses no commit that comes`() throws {
    let fixture = try VaultFixture()
    try fixture.create().close()
    try Data(repeating: 0xff, count: 2 * CommitJournal.byteCount)
      .write(to: URL(filePath: fixture.vaultPath + "/" + VaultFormat.journal))
    let vault = try fixture.open()
    vault.index.tables.changeRules { $0.commitsBeforeJournal = 1 }
    for number in 0..<3 {
      try vault.makeDirectory(at: VaultPath("\(number)"))
      try vault.commit()
    }
    try fixture.expectSameAfterCrash(vault)
    try vault.close()
  }
}
