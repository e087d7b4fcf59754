import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Testing

@testable import CofferVault

extension VaultFixture {
  /// A vault with folders that are stored, and small commits on top that are in the journal alone.
  func createJournaled(files: FileSystem = FileSystem(), commits: Int = 6) throws -> Vault {
    let vault = try create(files: files)
    vault.index.tables.changeRules { $0.commitsBeforeJournal = 1 }
    for number in 0..<8 { try vault.makeDirectory(at: VaultPath("stored-\(number)")) }
    try vault.commit()
    for number in 0..<commits { try vault.commitSmall(number) }
    return vault
  }

  /// A crash at this moment leaves what `vault` has committed, where nothing has been changed since.
  func expectSameAfterCrash(_ vault: Vault, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let expected = try ExpectedVault(reading: vault)
    try copyAsAfterCrash()
    let crashed = try openAfterCrash()
    #expect(crashed.committedRoot == vault.committedRoot, sourceLocation: sourceLocation)
    #expect(!crashed.isReadOnly, sourceLocation: sourceLocation)
    let state = try ExpectedVault(reading: crashed)
    #expect(state == expected, sourceLocation: sourceLocation)
    #expect(try crashed.verify(isDeep: true).isClean, sourceLocation: sourceLocation)
    try crashed.close()
    try FileManager.default.removeItem(atPath: folder("crashed"))
  }
}

extension Vault {
  /// The root of the last commit.
  var committedRoot: RootRecord { index.read { $0.storedRoot } }

  /// Adds a file in one of eight folders, changes another, removes a third, and commits that.
  func commitSmall(_ number: Int) throws {
    func path(_ number: Int) throws -> VaultPath { try VaultPath("stored-\(number % 8)/file-\(number)") }
    let file = try createFile(at: path(number))
    try file.write([UInt8](repeating: UInt8(number), count: 1000 + number), at: 0)
    try file.close()
    if number > 0 {
      let other = try open(path(number - 1), .writing)
      try other.write([0xcc], at: UInt64(number))
      try other.close()
    }
    if number > 1 { try remove(path(number - 2)) }
    try commit()
  }
}
