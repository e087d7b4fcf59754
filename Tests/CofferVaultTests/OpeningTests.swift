import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@testable import CofferVault

@Suite struct OpeningTests {
  @Test func `a wrong passcode opens nothing and the right one does`() throws {
    let fixture = try VaultFixture()
    try fixture.create().close()
    #expect(throws: VaultError.wrongPasscode) { try fixture.open("battery staple") }
    #expect(throws: VaultError.emptyPasscode) { try fixture.open("") }
    try fixture.open().close()
  }

  @Test func `the passcode is not asked for where there is nothing to open`() throws {
    let folder = try TemporaryFolder()
    let store = FileKeyStore(path: folder("keys"))
    func open(_ path: String) throws {
      _ = try Vault.open(
        at: path, keyStore: store,
        passcode: {
          Issue.record("asked")
          return VaultFixture.passcode()
        })
    }
    #expect(throws: VaultError.noVault) { try open(folder("absent")) }
    try FileManager.default.createDirectory(atPath: folder("other"), withIntermediateDirectories: false)
    #expect(throws: VaultError.notAVault) { try open(folder("other")) }
    try Data("{}".utf8).write(to: URL(filePath: folder("other/coffer.json")))
    #expect(throws: VaultError.notAVault) { try open(folder("other")) }
    try Data("a file".utf8).write(to: URL(filePath: folder("file")))
    #expect(throws: VaultError.notAVault) { try open(folder("file")) }
  }

  @Test func `a folder that is not empty is refused and stays as it was`() throws {
    let fixture = try VaultFixture()
    try FileManager.default.createDirectory(atPath: fixture.vaultPath, withIntermediateDirectories: false)
    try Data("mine".utf8).write(to: URL(filePath: fixture.vaultPath + "/mine"))
    #expect(throws: VaultError.folderNotEmpty) { try fixture.create() }
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.vaultPath) == ["mine"])
  }

  @Test func `what is left of a vault is never taken for an empty folder`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.importFile(fixture.source([UInt8](repeating: 1, count: 10_000)), to: VaultPath("f"))
    try vault.close()
    for missing in [
      ["coffer.json"], ["coffer.json", "keybag.json"], ["coffer.json", "index.sqlite"], ["keybag.json"],
    ] {
      for name in missing {
        try FileManager.default.moveItem(atPath: fixture.vaultPath + "/" + name, toPath: fixture.folder("away-" + name))
      }
      #expect(throws: VaultError.folderNotEmpty, "without \(missing)") { try fixture.create() }
      for name in missing {
        try FileManager.default.moveItem(atPath: fixture.folder("away-" + name), toPath: fixture.vaultPath + "/" + name)
      }
      let again = try fixture.open()
      #expect(try again.contents(of: VaultPath("f")).count == 10_000)
      try again.close()
    }
  }

  /// Small files lie in the index, beside no object.
  @Test func `nor is an index whose keys were stored`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.importFile(fixture.source([1, 2, 3]), to: VaultPath("f"))
    try vault.close()
    for name in ["coffer.json", "keybag.json"] {
      try FileManager.default.moveItem(atPath: fixture.vaultPath + "/" + name, toPath: fixture.folder("away-" + name))
    }
    #expect(throws: VaultError.folderNotEmpty) { try fixture.create() }
    for name in ["coffer.json", "keybag.json"] {
      try FileManager.default.moveItem(atPath: fixture.folder("away-" + name), toPath: fixture.vaultPath + "/" + name)
    }
    let again = try fixture.open()
    #expect(try again.contents(of: VaultPath("f")) == [1, 2, 3])
    try again.close()
  }

  @Test func `a creation that was interrupted does not stand in the way of the next`() throws {
    let fixture = try VaultFixture()
    let place = fixture.vaultPath
    try FileManager.default.createDirectory(atPath: place + "/objects", withIntermediateDirectories: true)
    for name in ["lock", "index.sqlite", "index.sqlite-wal"] {
      try Data([1]).write(to: URL(filePath: place + "/" + name))
    }
    try fixture.create().close()
    try fixture.open().close()
  }

  @Test func `a second opening names the holder`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    #expect(throws: VaultError.inUse(holder: ProcessHardening.processID)) { try fixture.open() }
    try vault.close()
  }

  @Test func `without the device secret no passcode opens the vault`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let id = vault.id
    try vault.close()
    try fixture.keyStore.removeAll(of: id)
    #expect(throws: VaultError.deviceSecretMissing) { try fixture.open() }
    // Nor does another secret.
    try fixture.keyStore.write(SecretKey().secretBytes, as: .deviceSecret, of: id)
    #expect(throws: VaultError.damaged(what: "coffer.json or keybag.json")) { try fixture.open() }
  }

  @Test func `a newer format is named`() throws {
    let fixture = try VaultFixture()
    try fixture.create().close()
    let path = URL(filePath: fixture.vaultPath + "/coffer.json")
    let text = try String(contentsOf: path, encoding: .utf8)
    try text.replacing("\"version\": 0", with: "\"version\": 7").write(to: path, atomically: true, encoding: .utf8)
    #expect(throws: VaultError.newerFormat(7)) { try fixture.open() }
  }

  @Test func `every truncation and every flipped byte of the headers is refused`() throws {
    let fixture = try VaultFixture()
    try fixture.create().close()
    for name in ["coffer.json", "keybag.json"] {
      let url = URL(filePath: fixture.vaultPath + "/" + name)
      let whole = try Data(contentsOf: url)
      for length in stride(from: 0, to: whole.count - 1, by: 7) {
        try whole.prefix(length).write(to: url)
        #expect(throws: (any Error).self, "\(name) cut to \(length)") { try fixture.open() }
      }
      for index in whole.indices {
        // White space between the members of the keybag may change: its meaning is what is authenticated.
        if name == "keybag.json", [9, 10, 13, 32].contains(whole[index]) { continue }
        var changed = whole
        changed[index] ^= 1
        try changed.write(to: url)
        #expect(throws: (any Error).self, "\(name) byte \(index)") { try fixture.open() }
      }
      try whole.write(to: url)
    }
    try fixture.open().close()
  }

  @Test func `a creation that a crash ended can be done again, also where a file was being replaced`() throws {
    let fixture = try VaultFixture()
    try FileManager.default.createDirectory(atPath: fixture.vaultPath, withIntermediateDirectories: false)
    for name in [".0123456789abcdef.new", "ballast"] {
      try Data([1]).write(to: URL(filePath: fixture.vaultPath + "/" + name))
    }
    try fixture.create().close()
    #expect(!FileManager.default.fileExists(atPath: fixture.vaultPath + "/.0123456789abcdef.new"))
    let other = try VaultFixture()
    try FileManager.default.createDirectory(atPath: other.vaultPath, withIntermediateDirectories: false)
    try Data([1]).write(to: URL(filePath: other.vaultPath + "/.0123456789abcdeg.new"))
    #expect(throws: VaultError.folderNotEmpty) { try other.create() }
  }

  /// To open a pipe waits for somebody at its other end.
  @Test(.timeLimit(.minutes(10)), arguments: ["coffer.json", "keybag.json", "ballast", "journal"])
  func `a pipe in a file's place keeps nobody waiting`(_ name: String) throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.makeDirectory(at: VaultPath("folder"))
    try vault.close()
    let path = fixture.vaultPath + "/" + name
    try? FileManager.default.removeItem(atPath: path)
    #expect(mkfifo(path, 0o600) == 0)
    if name.hasSuffix(".json") {
      #expect(throws: VaultError.self) { try fixture.open() }
      return
    }
    let opened = try fixture.open()
    opened.index.tables.changeRules { $0.commitsBeforeJournal = 1 }
    for number in 0..<4 {
      try opened.makeDirectory(at: VaultPath("folder \(number)"))
      try opened.commit()
    }
    try opened.close()
    let again = try fixture.open()
    #expect(try again.list(.root).count == 5)
    try again.close()
  }

  @Test func `a copy that went another way for as many commits can be read and not changed`() throws {
    let fixture = try VaultFixture()
    let made = try fixture.create()
    try made.close()
    // With its own key store, as another device would have it.
    try fixture.copyAsAfterCrash()
    let vaults = [try fixture.open(), try fixture.openAfterCrash()]
    for (number, vault) in vaults.enumerated() {
      try vault.makeDirectory(at: VaultPath("\(number)"))
      try vault.close()
    }
    try FileManager.default.removeItem(atPath: fixture.vaultPath)
    try FileManager.default.moveItem(atPath: fixture.folder("crashed/vault"), toPath: fixture.vaultPath)
    let other = try fixture.open()
    #expect(other.isReadOnly)
    #expect(try other.list(.root).map(\.name) == [Array("1".utf8)])
    try other.close()
  }

  @Test func `an older copy of the vault can be read and not changed`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.importFile(fixture.source([1, 2, 3]), to: VaultPath("a"))
    try vault.close()
    let copy = fixture.folder("copy")
    try FileManager.default.copyItem(atPath: fixture.vaultPath, toPath: copy)
    let again = try fixture.open()
    try again.remove(VaultPath("a"))
    try again.close()
    try FileManager.default.removeItem(atPath: fixture.vaultPath)
    try FileManager.default.moveItem(atPath: copy, toPath: fixture.vaultPath)
    let old = try fixture.open()
    #expect(old.isReadOnly)
    #expect(try old.contents(of: VaultPath("a")) == [1, 2, 3])
    #expect(throws: VaultError.olderThanAnchor) { try old.remove(VaultPath("a")) }
    #expect(throws: VaultError.olderThanAnchor) { try old.makeDirectory(at: VaultPath("d")) }
    #expect(throws: VaultError.olderThanAnchor) { try old.setSetting("s", to: [1]) }
    try old.close()
    #expect(try fixture.open().isReadOnly)
  }
}
