import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVault
import Foundation
import Testing

@Suite struct ConfidentialityTests {
  @Test func `no content, name or passcode is in any file`() throws {
    let fixture = try VaultFixture()
    let canary = "CANARY-7f3a9b"
    let bytes = Array(String(repeating: canary, count: 10_000).utf8)
    let vault = try fixture.create()
    try vault.makeDirectory(at: VaultPath("folder-\(canary)"))
    for (name, count) in [("small", 100), ("large", bytes.count)] {
      let source = try fixture.source(Array(bytes.prefix(count)))
      try vault.importFile(source, to: VaultPath("folder-\(canary)/\(canary)-\(name)"))
    }
    try vault.setSetting("setting-\(canary)", to: Array(canary.utf8))
    try vault.commit()
    // While it is open too: the log of the index holds what was just written.
    #expect(try files(with: [canary, "correct horse"], in: fixture) == [])
    try vault.close()
    #expect(try files(with: [canary, "correct horse"], in: fixture) == [])
    // The search finds what is there.
    try Data("x\(canary)x".utf8).write(to: URL(filePath: fixture.vaultPath + "/control"))
    #expect(try files(with: [canary], in: fixture) == ["vault/control"])
  }

  @Test func `nobody but the owner may read the vault or the key store`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.importFile(fixture.source([UInt8](repeating: 0, count: 10_000)), to: VaultPath("f"))
    try vault.commit()
    for root in ["vault", "keys"] {
      for path in try FileManager.default.subpathsOfDirectory(atPath: fixture.folder(root)) {
        // The index takes the rights that the process gives new files; the folder above it is what closes it.
        if path.hasPrefix("index.sqlite") { continue }
        let status = try #require(try FileSystem().status(of: fixture.folder(root) + "/" + path))
        #expect(status.permissions & 0o077 == 0, "\(path)")
      }
      let status = try #require(try FileSystem().status(of: fixture.folder(root)))
      #expect(status.permissions & 0o077 == 0)
    }
    try vault.close()
  }

  private func files(with texts: [String], in fixture: VaultFixture) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: fixture.folder.path).filter { path in
      guard !path.hasPrefix("source") else { return false }
      if texts.contains(where: { path.contains($0) }) { return true }
      guard let data = FileManager.default.contents(atPath: fixture.folder(path)) else { return false }
      return texts.contains { data.range(of: Data($0.utf8)) != nil }
    }.sorted()
  }
}
