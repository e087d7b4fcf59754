import CofferFiles
import CofferVaultTestSupport
import Testing

@testable import CofferVault

@Suite struct RemovedRowsTests {
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
