import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Testing

@testable import CofferVault

@Suite struct WipeTests {
  private let passcode = PasscodeFixture.old

  @Test func `a wipe leaves nothing, and a copy from before opens with no passcode`() throws {
    let fixture = try PasscodeFixture()
    let copy = fixture.folder("copy")
    try FileManager.default.copyItem(atPath: fixture.disk + "/vault", toPath: copy)
    var isDestroyed = false
    let report = try Vault.wipe(at: fixture.disk + "/vault", keyStore: fixture.keyStore(fixture.disk)) {
      isDestroyed = true
      // The keys are gone and the rest is there.
      #expect(!FileManager.default.fileExists(atPath: fixture.disk + "/vault/keybag.json"))
      #expect(FileManager.default.fileExists(atPath: fixture.disk + "/vault/index.sqlite"))
      let names = try? FileManager.default.subpathsOfDirectory(atPath: fixture.disk + "/keys").sorted()
      #expect(names?.map { $0.split(separator: "/").dropFirst().joined() } == ["", "lock", "wiped"])
    }
    #expect(isDestroyed)
    #expect(report == WipeReport(keys: .destroyed, hadRecoveryKey: false, hadEscrowKey: false, holder: nil))
    #expect(!FileManager.default.fileExists(atPath: fixture.disk + "/vault"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.disk + "/keys") == [])
    #expect(try fixture.refusal(passcode, on: fixture.disk) == .noVault)
    try FileManager.default.moveItem(atPath: copy, toPath: fixture.disk + "/vault")
    #expect(try fixture.refusal(passcode, on: fixture.disk) == .deviceSecretMissing)
  }

  @Test func `what was kept is overwritten before its name goes`() throws {
    let fixture = try PasscodeFixture()
    let id = try #require(try FileManager.default.contentsOfDirectory(atPath: fixture.disk + "/keys").first)
    let files = FileSystem(faults: fixture.recorder)
    _ = try Vault.wipe(at: fixture.disk + "/vault", keyStore: fixture.keyStore(fixture.disk, files), files: files)
    let log = fixture.recorder.log
    for name in ["device-secret", "rotation", "keybag.json"] {
      let unlink = try #require(log.steps.lastIndex { Self.unlinked($0) == name }, "\(name)")
      let node = log.steps[unlink].node
      let before = log.steps[fixture.start..<unlink].filter { $0.node == node }
      #expect(before.count == 2, "\(name)")
      if case .write(_, 0, let bytes) = before.first {
        #expect(bytes.allSatisfy { $0 == 0 } && bytes.count >= 32, "\(name)")
      } else {
        Issue.record("\(name) was not overwritten")
      }
      #expect(before.last?.isSync == true, "\(name)")
    }
    // The key store's secrets before anything else, and all keys before any content.
    let names = log.steps[fixture.start...].compactMap(Self.unlinked)
    #expect(names.prefix(2) == ["device-secret", "rotation"])
    let keybag = try #require(names.firstIndex(of: "keybag.json"))
    let index = try #require(names.firstIndex(of: "index.sqlite"))
    #expect(keybag < index)
    #expect(names.firstIndex(of: "coffer.json") ?? 0 > index)
    #expect(FileManager.default.fileExists(atPath: fixture.disk + "/keys/\(id)") == false)
  }

  private static func isOverwriting(_ step: StorageStep) -> Bool {
    if case .write(_, 0, let bytes) = step { bytes.count >= 32 && bytes.allSatisfy { $0 == 0 } } else { false }
  }

  private static func unlinked(_ step: StorageStep) -> String? {
    if case .unlink(_, let name, _) = step { String(decoding: name, as: UTF8.self) } else { nil }
  }

  @Test func `a wipe that is cut anywhere opens nothing or all, and can be done again`() throws {
    let fixture = try PasscodeFixture()
    let files = FileSystem(faults: fixture.recorder)
    _ = try Vault.wipe(at: fixture.disk + "/vault", keyStore: fixture.keyStore(fixture.disk, files), files: files)
    var opened = 0
    var count = 0
    // The first write to a key, before which the mark was stored.
    let begun =
      try #require(fixture.recorder.log.steps[fixture.start...].firstIndex(where: Self.isOverwriting))
      - fixture.start
    try fixture.cuts(reorderings: 1) { position, fate, write in
      let place = try MemoryFolder()
      try write(place("disk"))
      count += 1
      let refusal = try fixture.refusal(passcode, on: place("disk"))
      if refusal == nil { opened += 1 }
      let text = "cut behind step \(position), \(fate): \(refusal as Any)"
      switch refusal {
      case nil, .wiped, .noVault, .notAVault: break
      default: Issue.record("\(text)")
      }
      // Once a byte of a key is gone, the passcode opens nothing, whatever else is there.
      #expect(refusal != nil || position <= begun, "\(text)")
      try write(place("disk"))
      guard FileManager.default.fileExists(atPath: place("disk/vault/coffer.json")) else { return }
      // Elsewhere than the vault was: a wipe that is known to have begun goes on, and one that is not is none.
      let hasBegun = refusal == .wiped
      let report = try Vault.wipe(
        at: place("disk/vault"), keyStore: fixture.keyStore(place("disk")), scope: hasBegun ? .vault : .everyCopy)
      #expect(report.holder == nil)
      #expect(report.keys == (hasBegun ? .destroyedBefore : .destroyed) || report.keys == .absent, "\(text)")
      #expect(!FileManager.default.fileExists(atPath: place("disk/vault")), "\(text)")
      #expect((try? FileManager.default.contentsOfDirectory(atPath: place("disk/keys"))) ?? [] == [], "\(text)")
    }
    #expect(opened > 0 && count > 30)
  }

  @Test func `a vault that is open loses its keys at once, and the rest when its holder has ended`() throws {
    let fixture = try PasscodeFixture(options: KeybagOptions(recoveryKey: RecoveryKey()))
    let vault = try fixture.open(passcode, on: fixture.disk)
    let report = try Vault.wipe(at: fixture.disk + "/vault", keyStore: fixture.keyStore(fixture.disk))
    #expect(
      report.holder == ProcessHardening.processID && report.hadRecoveryKey == true && report.hadEscrowKey == false)
    #expect(!FileManager.default.fileExists(atPath: fixture.disk + "/vault/keybag.json"))
    // The holder goes on with what it has, and gives nobody else the keys.
    #expect(try vault.contents(of: VaultPath("kept")) == [1, 2, 3])
    #expect(throws: VaultError.wiped) {
      try vault.changePasscode(old: { VaultFixture.passcode() }, new: { VaultFixture.passcode() })
    }
    try vault.setSetting("after", to: [1])
    try vault.close()
    #expect(try fixture.refusal(passcode, on: fixture.disk) == .wiped)
    #expect(try Vault.wipe(at: fixture.disk + "/vault", keyStore: fixture.keyStore(fixture.disk)).holder == nil)
    #expect(!FileManager.default.fileExists(atPath: fixture.disk + "/vault"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.disk + "/keys") == [])
  }

  @Test func `what is no vault is not wiped, and what others put there stays`() throws {
    let folder = try TemporaryFolder()
    let store = FileKeyStore(path: folder("keys"))
    #expect(throws: VaultError.noVault) { try Vault.wipe(at: folder("absent"), keyStore: store) }
    try FileManager.default.createDirectory(atPath: folder("other"), withIntermediateDirectories: false)
    try Data("mine".utf8).write(to: URL(filePath: folder("other/mine")))
    #expect(throws: VaultError.notAVault) { try Vault.wipe(at: folder("other"), keyStore: store) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder("other")) == ["mine"])
    let fixture = try PasscodeFixture()
    try Data("mine".utf8).write(to: URL(filePath: fixture.disk + "/vault/mine"))
    _ = try Vault.wipe(at: fixture.disk + "/vault", keyStore: fixture.keyStore(fixture.disk))
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.disk + "/vault") == ["mine"])
  }
}
