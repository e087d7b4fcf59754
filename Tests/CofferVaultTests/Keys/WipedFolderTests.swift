import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Testing

@testable import CofferVault

/// Which folder a wipe takes for the vault: its copies have the same id and the same keys.
@Suite struct WipedFolderTests {
  private let passcode = PasscodeFixture.old
  private let fixture: PasscodeFixture
  private var vault: String { fixture.disk + "/vault" }
  private var store: FileKeyStore { fixture.keyStore(fixture.disk) }
  private let manager = FileManager.default

  init() throws { fixture = try PasscodeFixture() }

  private func wipe(_ path: String, _ scope: WipeScope = .vault) throws -> WipeReport {
    try Vault.wipe(at: path, keyStore: store, scope: scope)
  }

  private func expectRefusal(
    _ error: VaultError, _ path: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let before = try manager.subpathsOfDirectory(atPath: path).sorted()
    #expect(throws: error, sourceLocation: sourceLocation) { try wipe(path) }
    #expect(try manager.subpathsOfDirectory(atPath: path).sorted() == before, sourceLocation: sourceLocation)
  }

  private func expectOpening(at path: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let opened = try open(path)
    #expect(try opened.contents(of: VaultPath("kept")) == [1, 2, 3], sourceLocation: sourceLocation)
    try opened.close()
  }

  private func open(_ path: String) throws -> Vault {
    let place = try VaultPlace(
      at: path, files: FileSystem(), keyStore: store, time: fixture.time, scheduler: VaultOptions().scheduler)
    let opened = try place.locked.unlock(passcode: { VaultFixture.passcode(passcode) }, deriving: fixture.derive)
    return try place.vault(opened, options: TestVault.options)
  }

  private func change(_ path: String) throws {
    let opened = try open(path)
    try opened.setSetting("changed", to: [1])
    try opened.close()
  }

  @Test func `a copy, a backup and a forged folder do not take the vault's keys with them`() throws {
    let opened = try open(vault)
    try opened.backup(to: fixture.folder("backup"))
    try opened.close()
    try manager.copyItem(atPath: vault, toPath: fixture.folder("copy"))
    try manager.createDirectory(atPath: fixture.folder("forged"), withIntermediateDirectories: false)
    try manager.copyItem(atPath: vault + "/coffer.json", toPath: fixture.folder("forged/coffer.json"))
    let elsewhere = try TemporaryFolder()
    try manager.copyItem(atPath: vault, toPath: elsewhere("copy"))
    for path in [fixture.folder("backup"), fixture.folder("copy"), elsewhere("copy")] {
      try expectRefusal(.maybeCopy, path)
      // Who looks into it does not make it the vault.
      try expectOpening(at: path)
      try expectRefusal(.maybeCopy, path)
    }
    try expectRefusal(.foreignKeybag, fixture.folder("forged"))
    // Its keybag is another vault's.
    let other = try PasscodeFixture()
    try manager.copyItem(atPath: other.disk + "/vault/keybag.json", toPath: fixture.folder("forged/keybag.json"))
    try expectRefusal(.foreignKeybag, fixture.folder("forged"))
    try expectOpening(at: vault)
    // Asked for by name, they go.
    #expect(try wipe(fixture.folder("copy"), .everyCopy).keys == .destroyed)
    #expect(throws: VaultError.deviceSecretMissing) { try expectOpening(at: vault) }
    try expectRefusal(.nothingToWipe, vault)
  }

  @Test func `a vault that was moved is wiped, whatever it was reached by`() throws {
    for isOpened in [false, true] {
      let fixture = try PasscodeFixture()
      let moved = fixture.folder("moved")
      try manager.moveItem(atPath: fixture.disk + "/vault", toPath: moved)
      try manager.createSymbolicLink(atPath: fixture.folder("link"), withDestinationPath: moved)
      let store = fixture.keyStore(fixture.disk)
      if isOpened { try WipedFolderTests(fixture).change(moved) }
      #expect(try Vault.wipe(at: fixture.folder("link"), keyStore: store).keys == .destroyed)
      #expect(try manager.contentsOfDirectory(atPath: moved) == [])
    }
  }

  @Test func `a vault that was moved to another file system is wiped once the former place is seen to be empty`() throws
  {
    let elsewhere = try TemporaryFolder()
    let moved = elsewhere("moved")
    try manager.copyItem(atPath: vault, toPath: moved)
    guard try FileSystem().status(of: moved)?.device != FileSystem().status(of: vault)?.device else { return }
    try expectRefusal(.maybeCopy, moved)
    // Its disk is not there.
    try manager.moveItem(atPath: fixture.disk, toPath: fixture.folder("away"))
    try manager.createDirectory(atPath: fixture.disk, withIntermediateDirectories: false)
    let away = FileKeyStore(path: fixture.folder("away/keys"))
    try manager.removeItem(atPath: fixture.disk)
    #expect(throws: VaultError.maybeCopy) { try Vault.wipe(at: moved, keyStore: away) }
    try manager.moveItem(atPath: fixture.folder("away"), toPath: fixture.disk)
    // It is, without the vault; or with another one there.
    try manager.removeItem(atPath: vault)
    let other = try PasscodeFixture()
    try manager.copyItem(atPath: other.disk + "/vault", toPath: vault)
    // A backup that nobody ever opened was not moved.
    try manager.removeItem(atPath: moved + "/lock")
    try expectRefusal(.maybeCopy, moved)
    try expectOpening(at: moved)
    #expect(try wipe(moved).keys == .destroyed)
    #expect(manager.fileExists(atPath: vault))
  }

  @Test func `the copy that was changed last is the vault, and a restored one at its place is, too`() throws {
    try manager.copyItem(atPath: vault, toPath: fixture.folder("copy"))
    try change(fixture.folder("copy"))
    try expectRefusal(.maybeCopy, vault)
    try manager.moveItem(atPath: vault, toPath: fixture.folder("older"))
    try expectRefusal(.maybeCopy, fixture.folder("older"))
    try manager.moveItem(atPath: fixture.folder("copy"), toPath: fixture.folder("newer"))
    try manager.copyItem(atPath: fixture.folder("newer"), toPath: fixture.folder("copy"))
    #expect(try wipe(fixture.folder("copy")).keys == .destroyed)
  }

  @Test func `without a word on the place nothing is wiped but by name`() throws {
    let id = try #require(Vault.statedID(at: vault))
    for bytes: [UInt8]? in [nil, [], [0], [1] + [UInt8](repeating: 0, count: 30)] {
      try manager.removeItem(atPath: fixture.disk + "/keys/\(id)/place")
      if let bytes { try store.write(SecretBytes(copying: bytes), as: .place, of: id) }
      try expectRefusal(.maybeCopy, vault)
      try change(vault)
    }
    // The next change has put it back.
    #expect(try wipe(vault).keys == .destroyed)
  }

  @Test func `a damaged keybag keeps nobody from destroying the keys, who says so`() throws {
    let file = try FileSystem().open(vault + "/keybag.json", .readWrite)
    try file.writeAll(Array("x".utf8))
    try expectRefusal(.foreignKeybag, vault)
    #expect(
      try wipe(vault, .everyCopy)
        == WipeReport(
          keys: .destroyed, hadRecoveryKey: nil, hadEscrowKey: nil, holder: nil))
    #expect(try manager.contentsOfDirectory(atPath: fixture.disk + "/keys") == [])
  }

  @Test func `a key store that has no key of the vault destroys nothing and claims nothing`() throws {
    for scope in [WipeScope.vault, .everyCopy] {
      for other in [FileKeyStore(path: fixture.folder("none")), try PasscodeFixture().keyStore(fixture.disk + "/x")] {
        #expect(throws: VaultError.nothingToWipe) { try Vault.wipe(at: vault, keyStore: other, scope: scope) }
      }
    }
    try expectOpening(at: vault)
    #expect(!manager.fileExists(atPath: fixture.folder("none")))
    // What no key opens is taken away, and called so.
    try manager.createDirectory(atPath: fixture.folder("rest"), withIntermediateDirectories: false)
    try manager.copyItem(atPath: vault + "/coffer.json", toPath: fixture.folder("rest/coffer.json"))
    let none = FileKeyStore(path: fixture.folder("none"))
    #expect(try Vault.wipe(at: fixture.folder("rest"), keyStore: none).keys == .absent)
    try expectOpening(at: vault)
  }

  @Test func `a wipe that has begun knows what opens a copy, and a recovery ends it`() throws {
    let key = RecoveryKey()
    let fixture = try PasscodeFixture(options: KeybagOptions(recoveryKey: key))
    let (vault, store) = (fixture.disk + "/vault", fixture.keyStore(fixture.disk))
    let copy = fixture.folder("copy")
    try manager.createDirectory(atPath: copy, withIntermediateDirectories: false)
    try manager.copyItem(atPath: vault, toPath: copy + "/vault")
    let holder = try fixture.open(passcode, on: fixture.disk)
    #expect(try Vault.wipe(at: vault, keyStore: store).hadRecoveryKey == true)
    // Whichever copy it is.
    #expect(throws: VaultError.wiped) { try WipedFolderTests(fixture).expectOpening(at: copy + "/vault") }
    try holder.close()
    let report = try Vault.wipe(at: vault, keyStore: store)
    #expect(report == WipeReport(keys: .destroyedBefore, hadRecoveryKey: true, hadEscrowKey: false, holder: nil))
    // And where the wipe was not finished: the device takes the copy on.
    try store.write(SecretBytes(copying: [0, 0, 0]), as: .wiped, of: holder.id)
    try fixture.recover(.recoveryKey(key), on: copy, keyStore: store).close()
    #expect(try store.read(.wiped, of: holder.id) == nil)
    #expect(try Vault.wipe(at: copy + "/vault", keyStore: store).keys == .destroyed)
  }

  // MARK: At the same moment

  /// A key store that says when somebody comes to its lock.
  private struct Watched: KeyStore {
    let store: FileKeyStore
    let didCome: DispatchSemaphore
    func read(_ item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) -> SecretBytes? {
      try store.read(item, of: vault)
    }
    func write(_ value: SecretBytes, as item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) {
      try store.write(value, as: item, of: vault)
    }
    func removeAll(of vault: VaultID, keeping kept: Set<KeyStoreItem>) throws(KeyStoreError) {
      try store.removeAll(of: vault, keeping: kept)
    }
    func withLock<Result>(of vault: VaultID, _ body: () throws -> Result) throws -> Result {
      didCome.signal()
      return try store.withLock(of: vault, body)
    }
  }

  /// Calls something before one of the calls that each write of the key store and of the keybag has: before its file is
  /// made, and before that gets its name.
  private final class AtWrite: FaultPlan, @unchecked Sendable {
    private var left: Int
    private let body: () -> Void
    private(set) var wasReached = false
    init(_ number: Int, _ body: @escaping () -> Void) { (left, self.body) = (number, body) }
    func willCall(_ call: SystemCall) throws(SystemError) {
      guard call == .open || call == .rename else { return }
      left -= 1
      guard left == -1 else { return }
      wasReached = true
      body()
    }
  }

  @Test(arguments: [false, true]) func `what a wipe has destroyed nobody writes back`(_ isRecovery: Bool) throws {
    let key = RecoveryKey()
    let fixture = try PasscodeFixture(options: KeybagOptions(recoveryKey: key))
    // Each is a copy of what is in use nowhere.
    let original = fixture.folder("original")
    try manager.moveItem(atPath: fixture.disk, toPath: original)
    var count = 0
    while true {
      let disk = fixture.folder("disk \(count)")
      try manager.copyItem(atPath: original, toPath: disk)
      let store = fixture.keyStore(disk)
      let (didCome, didEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let vault = disk + "/vault"
      let plan = AtWrite(count) {
        Thread.detachNewThread {
          // It lies elsewhere than the vault that was copied.
          _ = try? Vault.wipe(at: vault, keyStore: Watched(store: store, didCome: didCome), scope: .everyCopy)
          didCome.signal()
          didEnd.signal()
        }
        didCome.wait()
      }
      let files = FileSystem(faults: plan)
      let id = try #require(Vault.statedID(at: vault))
      if isRecovery {
        let recovered = try? Vault.recover(
          at: vault, keyStore: fixture.keyStore(disk, files), with: .recoveryKey(key),
          passcode: { _ in VaultFixture.passcode(PasscodeFixture.new) }, derivation: VaultFixture.derivation(),
          keybag: .init(),
          files: files, time: fixture.time, vaultOptions: TestVault.options, deriving: fixture.derive)
        try? recovered?.close()
      } else {
        try? fixture.change(on: disk, files: files)
      }
      guard plan.wasReached else { break }
      didEnd.wait()
      count += 1
      #expect(try store.read(.deviceSecret, of: id) == nil, "at write \(count)")
      #expect(try store.read(.rotation, of: id) == nil, "at write \(count)")
      #expect(!manager.fileExists(atPath: vault + "/keybag.json"), "at write \(count)")
    }
    #expect(count > 20)
  }

  private init(_ fixture: PasscodeFixture) { self.fixture = fixture }
}
