import CofferFiles
import CofferTestSupport
import Foundation
import GRDB
import Synchronization
import Testing

@testable import CofferVault

@Suite struct PagesAheadTests {
  @Test func `who reads on is given what comes next, in a file of any size`() {
    for pageCount in [100, 1_000_000] as [UInt64] {
      var ahead = PagesAhead()
      #expect(ahead.range(for: 10, pageCount: pageCount, limit: 100) == 10..<11)
      #expect(ahead.range(for: 11, pageCount: pageCount, limit: 100) == 11..<27)
      #expect(ahead.range(for: 27, pageCount: pageCount, limit: 100) == 27..<43)
    }
  }

  @Test
  func `who looks here and there is given the neighbours where the whole map has room, and nothing else where not`() {
    var ahead = PagesAhead()
    #expect(ahead.range(for: 70, pageCount: 100, limit: 100) == 70..<71)
    #expect(ahead.range(for: 20, pageCount: 100, limit: 100) == 16..<32)
    #expect(ahead.range(for: 99, pageCount: 100, limit: 100) == 96..<100)
    #expect(ahead.range(for: 0, pageCount: 101, limit: 100) == 0..<1)
    #expect(ahead.range(for: 50, pageCount: 101, limit: 100) == 50..<51)
  }

  /// Also of a file that has just been cut, or of a page far behind its end.
  @Test func `what is asked for is among what is read, and that is bounded`() {
    var generator = SeededGenerator(seed: 1)
    var ahead = PagesAhead()
    for _ in 0..<10_000 {
      let pageCount = UInt64.random(in: 0..<200, using: &generator)
      let index = Bool.random(using: &generator) ? .random(in: 0..<250, using: &generator) : UInt64(1) << 52
      let range = ahead.range(for: index, pageCount: pageCount, limit: 100)
      #expect(range.contains(index) && range.count <= 16)
      #expect(range.upperBound <= max(pageCount, index + 1))
    }
  }

  private static let pageByteCount = 64 * 4096

  /// A file of 40 pages, each with bytes of its own.
  private func vaultWithFile(_ fixture: VaultFixture) throws -> Vault {
    let vault = try fixture.create()
    let file = try vault.createFile(at: VaultPath("file"), blockSizeExponent: 12)
    for page in 0..<40 {
      try file.write([UInt8](repeating: UInt8(page), count: Self.pageByteCount), at: UInt64(page * Self.pageByteCount))
    }
    try file.close()
    try vault.close()
    return try fixture.open()
  }

  private func first(_ page: Int, of file: OpenFile) throws -> UInt8? {
    try file.read(1, at: UInt64(page * Self.pageByteCount)).first
  }

  @Test func `pages are read together`() throws {
    let fixture = try VaultFixture()
    let vault = try vaultWithFile(fixture)
    let file = try vault.open(VaultPath("file"), .reading)
    for (page, loaded) in [(3, 1), (4, 17), (19, 17), (20, 33), (0, 36), (39, 40)] {
      #expect(try first(page, of: file) == UInt8(page))
      #expect(vault.files.loadedPages.load(ordering: .relaxed) == loaded, "\(page)")
    }
    for page in 0..<40 { #expect(try first(page, of: file) == UInt8(page)) }
    #expect(vault.files.loadedPages.load(ordering: .relaxed) == 40)
  }

  @Test func `a page that is damaged keeps no neighbour from being read`() throws {
    let fixture = try VaultFixture()
    let vault = try vaultWithFile(fixture)
    let number = try vault.attributes(at: VaultPath("file")).number
    let key = Data(vault.index.read { $0.rowKeys.mapPage(number, 9).bytes }).databaseValue
    try vault.close()
    let index = try RawIndex(fixture.vaultPath)
    var row = try #require(try index.value(.record, key))
    row[row.count / 2] ^= 1
    try index.update(.record, key, to: row)
    try index.close()
    let again = try fixture.open()
    let file = try again.open(VaultPath("file"), .reading)
    for page in 0..<40 {
      if page == 9 {
        #expect(throws: VaultError.self) { try first(page, of: file) }
      } else {
        #expect(try first(page, of: file) == UInt8(page))
      }
    }
  }
}
