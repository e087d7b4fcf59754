import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// Somebody changes the folder of an open vault, or its disk fails.
@Suite(.timeLimit(.minutes(5))) struct FolderChangedTests {
  private static func make(_ name: String, _ vault: Vault) throws {
    let file = try vault.createFile(at: VaultPath(name))
    try file.write([UInt8](repeating: 7, count: 20_000), at: 0)
    try file.close()
  }

  /// As programs do that take empty folders away.
  @Test func `a folder of objects that is gone with the last of them keeps nobody from committing`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try Self.make("file", vault)
    try vault.commit()
    try vault.remove(VaultPath("file"))
    try vault.commit()
    let objects = fixture.vaultPath + "/" + VaultFormat.objects
    let folders = try FileManager.default.contentsOfDirectory(atPath: objects)
    #expect(folders.count == 1)
    for name in folders { #expect(rmdir(objects + "/" + name) == 0) }
    for name in ["second", "third"] {
      try Self.make(name, vault)
      try vault.commit()
    }
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  @Test func `a backup takes no keybag that is not the vault's`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let keybag = URL(fileURLWithPath: fixture.vaultPath + "/" + VaultFormat.keybag)
    let before = try Data(contentsOf: keybag)
    try (before + Data(" ".utf8)).write(to: keybag)
    #expect(throws: VaultError.damaged(what: "keybag.json was replaced while the vault was open")) {
      try vault.backup(to: fixture.folder("backup"), control: TransferControl())
    }
    try before.write(to: keybag)
    try vault.backup(to: fixture.folder("backup"), control: TransferControl())
    try vault.close()
  }

  /// Fails the sync of a folder once.
  private final class FailingFolder: FaultPlan {
    private let state = Mutex<(number: Int, at: Int)>((0, .max))

    func failSync(after count: Int) { state.withLock { $0 = (0, count) } }
    var count: Int { state.withLock { $0.number } }

    func willCall(_ call: SystemCall) throws(SystemError) {
      guard call == .sync else { return }
      let fails = state.withLock { state in
        defer { state.number += 1 }
        return state.number == state.at
      }
      if fails { throw SystemError(code: EIO, call: "sync") }
    }
  }

  /// The disk says once that it has lost something, and then that all is well.
  @Test func `a sync of names that failed is not taken for done when it is tried again`() throws {
    let fixture = try VaultFixture()
    let faults = FailingFolder()
    let vault = try fixture.create(files: FileSystem(faults: faults))
    vault.index.tables.changeRules { $0.commitsBeforeJournal = .max }
    try Self.make("first", vault)
    faults.failSync(after: .max)
    try vault.commit()
    // The last is that of the objects' folder, after that of the folder in it.
    let count = faults.count
    #expect(count > 1)
    try Self.make("second", vault)
    faults.failSync(after: count - 1)
    #expect(throws: VaultError.system(SystemError(code: EIO, call: "sync"))) { try vault.commit() }
    #expect(throws: VaultError.needsReopening) { try vault.commit() }
    // Nor is anything taken that could never be stored.
    #expect(throws: VaultError.needsReopening) { try vault.createFile(at: VaultPath("third")) }
    try? vault.close()
    let again = try fixture.open()
    #expect(try again.attributes(at: VaultPath("first")).byteCount == 20_000)
    #expect(throws: VaultError.notFound) { try again.attributes(at: VaultPath("second")) }
    #expect(try again.verify(isDeep: true).isClean)
    try again.close()
  }

  @Test func `a sync of a file whose object was removed says so`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let file = try vault.createFile(at: VaultPath("file"))
    try file.write([UInt8](repeating: 7, count: 20_000), at: 0)
    try file.sync()
    let objects = fixture.vaultPath + "/" + VaultFormat.objects
    let names = try FileManager.default.subpathsOfDirectory(atPath: objects).filter { $0.contains("/") }
    #expect(names.count == 1)
    for name in names { try FileManager.default.removeItem(atPath: objects + "/" + name) }
    try file.write([UInt8](repeating: 8, count: 20_000), at: 0)
    #expect(throws: VaultError.damaged(what: "an object was removed while the vault was open")) { try file.sync() }
    try? file.close()
    try? vault.close()
  }

  /// The disk keeps the names of what is removed from the folders of objects.
  private final class KeepingObjects: FaultPlan {
    let isKeeping = Atomic(false)
    func willCall(_ call: SystemCall) throws(SystemError) {
      guard call == .unlink, isKeeping.load(ordering: .relaxed) else { return }
      throw SystemError(code: EIO, call: "unlink")
    }
  }

  @Test func `an object that a crash left, and that cannot be removed, keeps nobody from opening the vault`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try Self.make("file", vault)
    try vault.commit()
    // Its object is there, and no commit knows of it.
    try Self.make("second", vault)
    try fixture.copyAsAfterCrash()
    try vault.close()
    let faults = KeepingObjects()
    faults.isKeeping.store(true, ordering: .relaxed)
    let crashed = try fixture.openAfterCrash(files: FileSystem(faults: faults))
    #expect(try crashed.attributes(at: VaultPath("file")).byteCount == 20_000)
    faults.isKeeping.store(false, ordering: .relaxed)
    // What is in the way of a new one is replaced.
    for number in 0..<5 { try Self.make("new \(number)", crashed) }
    try crashed.commit()
    #expect(try crashed.verify(isDeep: true).isClean)
    try crashed.close()
  }
}
