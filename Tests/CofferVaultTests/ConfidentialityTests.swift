import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVault
import CofferVaultTestSupport
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

  @Test func `no content, name or passcode was ever written, not even for a moment`() throws {
    let folder = try MemoryFolder()
    try FileSystem().makeDirectory(folder("disk"))
    let recorder = try StorageRecorder(recording: folder("disk"))
    let files = FileSystem(faults: recorder)
    let vault = try Vault.create(
      at: folder("disk/vault"), keyStore: FileKeyStore(path: folder("disk/keys"), files: files),
      passcode: VaultFixture.passcode(), derivation: VaultFixture.derivation(), files: files)
    let canary = "CANARY-51c0de"
    let content = Array(String(repeating: canary, count: 10_000).utf8)
    var held = HeldFiles()
    for change in [
      VaultChange.makeFolder(path: "folder \(canary)"),
      .put(path: "folder \(canary)/small \(canary)", bytes: Array(content.prefix(200)), permissions: 0o600),
      .put(path: "large \(canary)", bytes: content, permissions: 0o600),
      .setAttribute(path: "large \(canary)", name: "user.\(canary)", to: Array(canary.utf8)),
      .symbolicLink(path: "link \(canary)", target: Array(canary.utf8)),
      .rename(path: "large \(canary)", to: "other \(canary)"),
      .hold(path: "other \(canary)"), .remove(path: "other \(canary)"), .release,
      .set(setting: "setting \(canary)", to: Array(canary.utf8)),
    ] {
      try change.apply(to: vault, holding: &held, scratch: folder("scratch"))
      try vault.commit()
    }
    try vault.close()
    let sought = [canary, "correct horse"]
    #expect(Self.writes(in: recorder.log, with: sought) == [])
    // Everything went past the recorder: the index, its log, the objects, the headers and the key store.
    let written = Set(
      recorder.log.steps.compactMap { step in
        if case .write(let node, _, _) = step { recorder.log.parts(node).prefix(2).joined(separator: "/") } else { nil }
      })
    #expect(written.isSuperset(of: ["vault/index.sqlite", "vault/index.sqlite-wal", "vault/objects"]))
    #expect(written.contains { $0.hasPrefix("keys/") })
    // The search finds what is there.
    let directory = try files.open(folder("disk/vault"), .directory)
    let control = try files.open("control", [.writeOnly, .createNew], in: directory)
    try control.writeAll(Array("x\(canary)x".utf8))
    try files.makeDirectory("control \(canary)", in: directory)
    #expect(Self.writes(in: recorder.log, with: sought) == ["vault/control", "vault/control \(canary)"])
  }

  /// The paths to which one of `texts` was ever written, or that hold it in their names.
  private static func writes(in log: StorageLog, with texts: [String]) -> [String] {
    var found: Set<String> = []
    for step in log.steps {
      guard let node = step.node, let path = log.paths[node] else { continue }
      if texts.contains(where: { path.contains($0) }) { found.insert(path) }
      guard case .write(_, _, let bytes) = step else { continue }
      let data = Data(bytes)
      if texts.contains(where: { data.range(of: Data($0.utf8)) != nil }) { found.insert(path) }
    }
    return found.sorted()
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
