import CofferFiles
import CofferSystem
import CofferVault
import Testing

/// Every class × every operation × every state.
@Suite struct ProtectionTableTests {
  @Test(arguments: ProtectionClass.allCases, ProtectionTable.State.allCases)
  func `a class allows what the table says`(_ protection: ProtectionClass, _ state: ProtectionTable.State) throws {
    for operation in ProtectionTable.Operation.allCases {
      let isAllowed = ProtectionTable.allows(operation, protection, state)
      let result = Result { try attempt(operation, protection, state) }
      switch result {
      case .success: #expect(isAllowed, "\(operation.rawValue) was not refused")
      case .failure(let error):
        #expect(!isAllowed, "\(operation.rawValue) was refused: \(error)")
        #expect(error as? VaultError == .locked, "\(operation.rawValue)")
      }
    }
  }

  @Test func `the documentation has the table`() throws {
    try GeneratedTable(name: "protection classes", document: "Documentation/Protection.md").require(
      ProtectionTable.lines)
  }

  private func attempt(
    _ operation: ProtectionTable.Operation, _ protection: ProtectionClass, _ state: ProtectionTable.State
  ) throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let (folder, file) = (try VaultPath("folder"), try VaultPath("folder/file"))
    try vault.makeDirectory(at: folder)
    try vault.protect(folder, as: protection)
    let content = [UInt8](repeating: 7, count: 50_000)
    try vault.importFile(fixture.source(content), to: file)
    if state == .beforeFirstUnlock {
      try vault.close()
      // Nobody has given the passcode yet.
      _ = try Vault.open(at: fixture.vaultPath, keyStore: fixture.keyStore, passcode: { throw VaultError.locked })
      return
    }
    let handle = try vault.open(file, .writing)
    if state == .locked { vault.lock(graceSeconds: 0) }
    switch operation {
    case .create:
      let made = try vault.createFile(at: VaultPath("folder/new"), permissions: 0o600, exclusive: true)
      try made.write([1, 2, 3], at: 0)
      try made.close()
      try vault.importFile(fixture.source(content, name: "other"), to: VaultPath("folder/imported"))
    case .open:
      let (reading, snapshot) = (
        Result { try vault.open(file, .reading) }, Result { try vault.snapshot(of: file) }
      )
      _ = try reading.get()
      #expect(throws: Never.self) { try snapshot.get() }
    case .read: #expect(try handle.read(9, at: 30_000) == [UInt8](repeating: 7, count: 9))
    case .write:
      try handle.write([8, 9], at: 20_000)
      try handle.sync()
    case .close: try handle.close()
    case .list:
      #expect(try vault.list(folder).map(\.name) == [Array("file".utf8)])
      #expect(try vault.attributes(at: file).byteCount == 50_000)
    case .rename: try vault.rename(file, to: VaultPath("folder/renamed"))
    case .remove: try vault.remove(file)
    }
    try vault.commit()
  }
}
