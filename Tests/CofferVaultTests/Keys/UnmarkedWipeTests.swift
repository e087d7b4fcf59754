import CofferCrypto
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// A wipe whose key store cannot take the mark that it has begun: the keys go all the same, and so does what is left.
@Suite struct UnmarkedWipeTests {
  private let key = RecoveryKey()
  private let fixture: PasscodeFixture
  private var vault: String { fixture.disk + "/vault" }
  private let manager = FileManager.default

  init() throws { fixture = try PasscodeFixture(options: KeybagOptions(recoveryKey: key)) }

  /// A key store that has no room for a mark, some times or always.
  private final class Full: KeyStore {
    private let store: FileKeyStore
    private let refusals: Mutex<Int>
    init(_ store: FileKeyStore, refusals: Int) {
      self.store = store
      self.refusals = Mutex(refusals)
    }

    func read(_ item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) -> SecretBytes? {
      try store.read(item, of: vault)
    }
    func write(_ value: SecretBytes, as item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) {
      let isRefused = refusals.withLock { left in
        guard item == .wiped, left > 0 else { return false }
        left -= 1
        return true
      }
      if isRefused { throw .system(SystemError(code: ENOSPC, call: "write")) }
      try store.write(value, as: item, of: vault)
    }
    func removeAll(of vault: VaultID, keeping kept: Set<KeyStoreItem>) throws(KeyStoreError) {
      try store.removeAll(of: vault, keeping: kept)
    }
    func withLock<Result>(of vault: VaultID, _ body: () throws -> Result) throws -> Result {
      try store.withLock(of: vault, body)
    }
  }

  /// A disk on which nothing can be written over.
  private struct WritesFail: FaultPlan {
    var code = EIO
    func willCall(_ call: SystemCall) throws(SystemError) {
      if call == .write { throw SystemError(code: code, call: "write") }
    }
  }

  private func full(refusals: Int = .max) -> Full { Full(fixture.keyStore(fixture.disk), refusals: refusals) }

  private func expectNothingLeft(sourceLocation: SourceLocation = #_sourceLocation) throws {
    #expect(!manager.fileExists(atPath: vault), sourceLocation: sourceLocation)
    #expect(
      try manager.contentsOfDirectory(atPath: fixture.disk + "/keys") == [], sourceLocation: sourceLocation)
  }

  @Test func `the mark is made where the secrets were, and knows what opens a copy`() throws {
    let holder = try fixture.open(PasscodeFixture.old, on: fixture.disk)
    let store = full(refusals: 1)
    #expect(try Vault.wipe(at: vault, keyStore: store).holder != nil)
    #expect(try store.read(.wiped, of: holder.id) != nil)
    #expect(try store.read(.place, of: holder.id) == nil)
    try holder.close()
    let report = try Vault.wipe(at: vault, keyStore: store)
    #expect(report == WipeReport(keys: .destroyedBefore, hadRecoveryKey: true, hadEscrowKey: false, holder: nil))
    try expectNothingLeft()
  }

  @Test func `without a mark a vault that was in use is known and removed, and its copies are not`() throws {
    let copy = fixture.folder("copy")
    let holder = try fixture.open(PasscodeFixture.old, on: fixture.disk)
    #expect(try Vault.wipe(at: vault, keyStore: full()).hadRecoveryKey == true)
    try manager.copyItem(atPath: vault, toPath: copy)
    try holder.close()
    for scope in [WipeScope.vault, .everyCopy] {
      #expect(throws: VaultError.nothingToWipe) { try Vault.wipe(at: copy, keyStore: full(), scope: scope) }
    }
    let report = try Vault.wipe(at: vault, keyStore: full())
    // Nobody claims that the recovery key opens nothing.
    #expect(report == WipeReport(keys: .destroyedBefore, hadRecoveryKey: nil, hadEscrowKey: nil, holder: nil))
    try expectNothingLeft()
  }

  @Test func `what a recovery key still opens goes where that is asked for`() throws {
    #expect(throws: VaultError.self) {
      try Vault.wipe(at: vault, keyStore: full(), files: FileSystem(faults: WritesFail()))
    }
    #expect(try fixture.refusal(PasscodeFixture.old, on: fixture.disk) == .deviceSecretMissing)
    #expect(throws: VaultError.nothingToWipe) { try Vault.wipe(at: vault, keyStore: full()) }
    // A byte of it is not all of it: a backup may have the rest.
    let keybag = try FileSystem().open(vault + "/keybag.json", .readWrite)
    try keybag.writeAll(Array("x".utf8))
    #expect(throws: VaultError.nothingToWipe) { try Vault.wipe(at: vault, keyStore: full()) }
    #expect(try Vault.wipe(at: vault, keyStore: full(), scope: .everyCopy).keys == .destroyedBefore)
    try expectNothingLeft()
  }

  /// Whoever has the vault open writes both where somebody has taken the key store away.
  @Test func `a place beside an anchor is no sign of a wipe`() throws {
    let holder = try fixture.open(PasscodeFixture.old, on: fixture.disk)
    let (id, store) = (holder.id, fixture.keyStore(fixture.disk))
    try holder.close()
    try store.removeAll(of: id, keeping: [.place, .anchor])
    for scope in [WipeScope.vault, .everyCopy] {
      #expect(throws: VaultError.nothingToWipe) { try Vault.wipe(at: vault, keyStore: store, scope: scope) }
    }
    #expect(manager.fileExists(atPath: vault + "/keybag.json"))
    // Nothing opens the folder any more.
    try manager.removeItem(atPath: vault + "/keybag.json")
    #expect(try Vault.wipe(at: vault, keyStore: store, scope: .everyCopy).keys == .destroyedBefore)
    try expectNothingLeft()
  }

  @Test func `a wipe that could not touch the key store is finished by the next`() throws {
    let id = try #require(Vault.statedID(at: vault))
    let holder = try fixture.open(PasscodeFixture.old, on: fixture.disk)
    try holder.close()
    let failing = fixture.keyStore(fixture.disk, FileSystem(faults: WritesFail()))
    #expect(throws: VaultError.self) { try Vault.wipe(at: vault, keyStore: failing) }
    let store = fixture.keyStore(fixture.disk)
    #expect(try store.holdsSecrets(of: id) && !manager.fileExists(atPath: vault + "/keybag.json"))
    // A copy says nothing of the vault.
    let copy = fixture.folder("copy")
    try manager.copyItem(atPath: vault, toPath: copy)
    try store.removeAll(of: id, keeping: [.deviceSecret, .rotation, .place])
    #expect(throws: VaultError.foreignKeybag) { try Vault.wipe(at: copy, keyStore: store) }
    #expect(try Vault.wipe(at: vault, keyStore: store).keys == .destroyed)
    try expectNothingLeft()
  }

  /// A disk on which nothing can be written but over what has just got another name.
  private final class OnlyRenamedTakes: FaultPlan {
    private let last = Mutex<SystemCall?>(nil)
    func willCall(_ call: SystemCall) throws(SystemError) {
      let isRefused = last.withLock { last in
        if call == .write { return last != .rename }
        if call != .sync { last = call }
        return false
      }
      if isRefused { throw SystemError(code: ENOSPC, call: "write") }
    }
  }

  @Test func `the mark finds its room in what goes with the vault`() throws {
    let holder = try fixture.open(PasscodeFixture.old, on: fixture.disk)
    let store = fixture.keyStore(fixture.disk, FileSystem(faults: OnlyRenamedTakes()))
    #expect(try Vault.wipe(at: vault, keyStore: store).holder != nil)
    let plain = fixture.keyStore(fixture.disk)
    #expect(try WipeMark(in: plain, for: holder.id)?.hadRecoveryKey == true)
    #expect(try plain.read(.attempts, of: holder.id) == nil && plain.read(.place, of: holder.id) == nil)
    try holder.close()
    #expect(try Vault.wipe(at: vault, keyStore: plain).keys == .destroyedBefore)
    try expectNothingLeft()
  }

  @Test func `who hears of a wipe that was cut is told the truth`() throws {
    let id = try #require(Vault.statedID(at: vault))
    let store = fixture.keyStore(fixture.disk)
    try store.write(SecretBytes(copying: [0, 0, 0]), as: .wiped, of: id)
    #expect(try fixture.refusal(PasscodeFixture.old, on: fixture.disk) == .wiped)
    #expect(try !store.holdsSecrets(of: id) && store.keeps(.wiped, of: id))
  }

  @Test func `a disk that has no room for zeros keeps no key`() throws {
    let files = FileSystem(faults: WritesFail(code: ENOSPC))
    let store = fixture.keyStore(fixture.disk, files)
    #expect(try Vault.wipe(at: vault, keyStore: store, files: files).keys == .destroyed)
    try expectNothingLeft()
  }

  @Test func `a mark that makes no sense is none of a copy`() throws {
    let id = try #require(Vault.statedID(at: vault))
    let copy = fixture.folder("copy")
    try manager.copyItem(atPath: vault, toPath: copy)
    let store = fixture.keyStore(fixture.disk)
    let mark = fixture.disk + "/keys/\(id)/wiped"
    try manager.createDirectory(atPath: mark, withIntermediateDirectories: false)
    #expect(throws: VaultError.maybeCopy) { try Vault.wipe(at: copy, keyStore: store) }
    try manager.removeItem(atPath: mark)
    for bytes: [UInt8] in [[0, 0], [1, 0, 0], [0, 0, 0, 0]] {
      try store.write(SecretBytes(copying: bytes), as: .wiped, of: id)
      #expect(throws: VaultError.maybeCopy) { try Vault.wipe(at: copy, keyStore: store) }
    }
    #expect(try Vault.wipe(at: vault, keyStore: store).keys == .destroyed)
    try expectNothingLeft()
  }

  @Test func `what was not known of copies is not denied by what one of them has`() throws {
    let fixture = try PasscodeFixture()
    let (vault, store) = (fixture.disk + "/vault", fixture.keyStore(fixture.disk))
    let copy = fixture.folder("copy")
    try manager.copyItem(atPath: vault, toPath: copy)
    let holder = try fixture.open(PasscodeFixture.old, on: fixture.disk)
    defer { try? holder.close() }
    try manager.removeItem(atPath: vault + "/keybag.json")
    #expect(try Vault.wipe(at: vault, keyStore: store, scope: .everyCopy).hadRecoveryKey == nil)
    #expect(try Vault.wipe(at: copy, keyStore: store).hadRecoveryKey == nil)
  }

  @Test(arguments: ["keybag.json", ".0123456789abcdef.new"])
  func `a keybag is destroyed once nothing but zeros is left of it`(_ name: String) throws {
    let id = try #require(Vault.statedID(at: vault))
    let store = fixture.keyStore(fixture.disk)
    try store.removeAll(of: id, keeping: [.place])
    try manager.moveItem(atPath: vault + "/keybag.json", toPath: vault + "/kept")
    try manager.moveItem(atPath: vault + "/kept", toPath: vault + "/" + name)
    #expect(throws: VaultError.nothingToWipe) { try Vault.wipe(at: vault, keyStore: store) }
    let file = try FileSystem().open(vault + "/" + name, .readWrite)
    try FileSystem().overwriteContents(of: file, limit: .max)
    #expect(try Vault.wipe(at: vault, keyStore: store).keys == .destroyedBefore)
    try expectNothingLeft()
  }

  enum Damage: CaseIterable { case long, folder, open, link }

  @Test(arguments: KeyStoreItem.allCases, Damage.allCases)
  func `what is damaged in the key store keeps no key`(_ item: KeyStoreItem, _ damage: Damage) throws {
    let id = try #require(Vault.statedID(at: vault))
    let path = fixture.disk + "/keys/\(id)/\(item.rawValue)"
    let content = manager.contents(atPath: path) ?? Data(count: 3)
    try? manager.removeItem(atPath: path)
    switch damage {
    case .long:
      _ = manager.createFile(atPath: path, contents: Data(count: 1 << 20), attributes: [.posixPermissions: 0o600])
    case .folder: try manager.createDirectory(atPath: path + "/more", withIntermediateDirectories: true)
    case .open: _ = manager.createFile(atPath: path, contents: content, attributes: [.posixPermissions: 0o644])
    case .link: try manager.createSymbolicLink(atPath: path, withDestinationPath: "/dev/null")
    }
    #expect(try Vault.wipe(at: vault, keyStore: fixture.keyStore(fixture.disk), scope: .everyCopy).holder == nil)
    try expectNothingLeft()
  }
}
