import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Testing

@testable import CofferVault

@Suite struct RecoveryTests {
  private let old = PasscodeFixture.old
  private let new = PasscodeFixture.new

  @Test func `a recovery key gives a vault a new passcode on its device, and the old one opens nothing`() throws {
    let key = RecoveryKey()
    let fixture = try PasscodeFixture(options: KeybagOptions(recoveryKey: key))
    let before = try Data(contentsOf: URL(filePath: fixture.disk + "/vault/keybag.json"))
    let vault = try fixture.recover(.recoveryKey(key))
    #expect(!vault.isReadOnly && vault.isBound == false)
    #expect(try vault.contents(of: VaultPath("kept")) == [1, 2, 3])
    try vault.close()
    #expect(try fixture.refusal(old, on: fixture.disk) == .wrongPasscode)
    #expect(try fixture.refusal(new, on: fixture.disk) == nil)
    // The old keybag opens with its recovery key still, and with no passcode.
    try before.write(to: URL(filePath: fixture.disk + "/vault/keybag.json"))
    #expect(try fixture.refusal(old, on: fixture.disk) == .outdatedKeybag)
    try fixture.recover(.recoveryKey(key), to: "third").close()
    #expect(try fixture.refusal("third", on: fixture.disk) == nil)
  }

  @Test func `on a device without its key store the vault is taken on, and the old device sees another branch`() throws
  {
    let key = RecoveryKey()
    let fixture = try PasscodeFixture(options: KeybagOptions(recoveryKey: key))
    let copy = fixture.folder("second")
    try FileSystem().makeDirectory(copy)
    try FileManager.default.copyItem(atPath: fixture.disk + "/vault", toPath: copy + "/vault")
    let store = FileKeyStore(path: copy + "/keys")
    #expect(throws: VaultError.deviceSecretMissing) { try fixture.open(old, on: copy) }
    let vault = try fixture.recover(.recoveryKey(key), on: copy, keyStore: store)
    let id = vault.id
    #expect(!vault.isReadOnly && vault.isBound == false)
    try vault.close()
    #expect(try fixture.refusal(old, on: copy) == .wrongPasscode)
    #expect(try fixture.refusal(new, on: copy) == nil)
    // Its secret is another.
    let secrets = try [store, fixture.keyStore(fixture.disk)].map {
      try $0.read(.deviceSecret, of: id)?.withUnsafeBytes { Array($0) }
    }
    #expect(secrets[0] != secrets[1])
    // Back on the first device, neither passcode opens it; the recovery key does, for whoever accepts it.
    try FileManager.default.removeItem(atPath: fixture.disk + "/vault")
    try FileManager.default.copyItem(atPath: copy + "/vault", toPath: fixture.disk + "/vault")
    for passcode in [old, new] {
      #expect(try fixture.refusal(passcode, on: fixture.disk) == .damaged(what: "coffer.json or keybag.json"))
    }
    #expect(throws: VaultError.olderThanAnchor) { try fixture.recover(.recoveryKey(key)) }
    var accepting = TestVault.options
    accepting.acceptsOlderState = true
    try fixture.recover(.recoveryKey(key), vaultOptions: accepting).close()
    #expect(try fixture.refusal(new, on: fixture.disk) == nil)
  }

  @Test func `a copy gets no passcode of its own while the vault itself is in use here`() throws {
    let key = RecoveryKey()
    let fixture = try PasscodeFixture(options: KeybagOptions(recoveryKey: key))
    let copy = fixture.folder("second")
    try FileSystem().makeDirectory(copy)
    try FileManager.default.copyItem(atPath: fixture.disk + "/vault", toPath: copy + "/vault")
    let store = fixture.keyStore(fixture.disk)
    #expect(throws: VaultError.copyOfPresentVault) {
      try fixture.recover(.recoveryKey(key), on: copy, keyStore: store)
    }
    // Nothing has changed for the vault.
    #expect(try fixture.refusal(old, on: fixture.disk) == nil)
    var accepting = TestVault.options
    accepting.acceptsOlderState = true
    try fixture.recover(.recoveryKey(key), on: copy, keyStore: store, vaultOptions: accepting).close()

    // Where the vault is gone, its copy is all that there is.
    let other = try PasscodeFixture(options: KeybagOptions(recoveryKey: key))
    let left = other.folder("second")
    try FileSystem().makeDirectory(left)
    try FileManager.default.copyItem(atPath: other.disk + "/vault", toPath: left + "/vault")
    try FileManager.default.removeItem(atPath: other.disk + "/vault")
    try other.recover(.recoveryKey(key), on: left, keyStore: other.keyStore(other.disk)).close()
  }

  @Test(arguments: [false, true]) func `a recovery that is cut anywhere can be done again`(isNewDevice: Bool) throws {
    let key = RecoveryKey()
    let fixture = try PasscodeFixture(options: KeybagOptions(recoveryKey: key))
    if isNewDevice {
      let files = FileSystem(faults: fixture.recorder)
      let id = try #require(try FileManager.default.contentsOfDirectory(atPath: fixture.disk + "/keys").first)
      try fixture.keyStore(fixture.disk, files).removeAll(of: #require(VaultID(bytes: [UInt8](hexadecimal: id) ?? [])))
      fixture.startHere()
    }
    try fixture.recover(.recoveryKey(key)).close()
    // What a cut left lies elsewhere, and is no copy of a vault that is in use.
    try FileManager.default.removeItem(atPath: fixture.disk + "/vault")
    var outcomes: [String: Int] = [:]
    try fixture.cuts(reorderings: 1) { position, fate, write in
      let place = try MemoryFolder()
      func refusal(_ passcode: String) throws -> VaultError? {
        try write(place("disk"))
        return try fixture.refusal(passcode, on: place("disk"))
      }
      let (byOld, byNew) = (try refusal(old), try refusal(new))
      let text = "cut behind step \(position), \(fate): \(byOld as Any), \(byNew as Any)"
      outcomes[byNew == nil ? "new" : byOld == nil ? "old" : "neither", default: 0] += 1
      #expect(byOld != nil || byNew != nil, "\(text)")
      if !isNewDevice { #expect(byOld == nil || byNew == nil, "\(text)") }
      // The key opens it whatever happened.
      try write(place("disk"))
      try fixture.recover(.recoveryKey(key), to: "third", on: place("disk"), keyStore: fixture.keyStore(place("disk")))
        .close()
      #expect(try fixture.refusal("third", on: place("disk")) == nil, "\(text)")
    }
    #expect(outcomes["new", default: 0] > 5)
    #expect(outcomes[isNewDevice ? "neither" : "old", default: 0] > 5)
  }

  @Test func `another key, another vault's key, and a vault without one are told apart`() throws {
    let key = RecoveryKey()
    let fixture = try PasscodeFixture(options: KeybagOptions(recoveryKey: key))
    let without = try PasscodeFixture()
    #expect(throws: VaultError.wrongRecoveryKey) { try fixture.recover(.recoveryKey(RecoveryKey())) }
    #expect(throws: VaultError.noEscrowSlot) { try fixture.recover(.escrowKey(HybridKey())) }
    #expect(throws: VaultError.noRecoverySlot) { try without.recover(.recoveryKey(key)) }
    // Replaced: the old one opens nothing that has the new keybag.
    let next = RecoveryKey()
    try fixture.change(options: KeybagOptions(recoveryKey: next))
    #expect(throws: VaultError.wrongRecoveryKey) { try fixture.recover(.recoveryKey(key)) }
    try fixture.recover(.recoveryKey(next)).close()
  }

  @Test func `a company's key opens what was sealed to it, in its own vault only`() throws {
    let company = HybridKey()
    let fixture = try PasscodeFixture()
    #expect(throws: VaultError.noEscrowSlot) { try fixture.recover(.escrowKey(company)) }
    try fixture.change(options: KeybagOptions(escrowKey: company.publicKey))
    #expect(throws: VaultError.wrongEscrowKey) { try fixture.recover(.escrowKey(HybridKey())) }
    // A slot that was sealed for another vault does not fit, whoever puts it there.
    let other = try PasscodeFixture(options: KeybagOptions(escrowKey: company.publicKey))
    let foreign = try Keybag(parsing: Array(Data(contentsOf: URL(filePath: other.disk + "/vault/keybag.json"))))
    var keybag = try Keybag(parsing: Array(Data(contentsOf: URL(filePath: fixture.disk + "/vault/keybag.json"))))
    let own = keybag.escrowSlot
    keybag.escrowSlot = foreign.escrowSlot
    try Data(keybag.encoded()).write(to: URL(filePath: fixture.disk + "/vault/keybag.json"))
    #expect(throws: VaultError.wrongEscrowKey) { try fixture.recover(.escrowKey(company)) }
    keybag.escrowSlot = own
    try Data(keybag.encoded()).write(to: URL(filePath: fixture.disk + "/vault/keybag.json"))
    let vault = try fixture.recover(.escrowKey(company), to: "third")
    #expect(try vault.keybagSummary().escrowKey == company.publicKey)
    try vault.close()
    #expect(try fixture.refusal(new, on: fixture.disk) == .wrongPasscode)
    #expect(try fixture.refusal("third", on: fixture.disk) == nil)
  }

  @Test func `a keybag that was changed opens with no key`() throws {
    let key = RecoveryKey()
    let company = HybridKey()
    let fixture = try PasscodeFixture(options: KeybagOptions(recoveryKey: key, escrowKey: company.publicKey))
    let url = URL(filePath: fixture.disk + "/vault/keybag.json")
    let whole = try Data(contentsOf: url)
    for index in stride(from: whole.startIndex, to: whole.endIndex, by: 3) {
      if [9, 10, 13, 32].contains(whole[index]) { continue }
      var changed = whole
      changed[index] ^= 1
      try changed.write(to: url)
      // What only a device can check, a recovery does not need.
      if Self.member(at: index, whole) == "deviceCode" { continue }
      #expect(throws: VaultError.self, "byte \(index)") { try fixture.recover(.recoveryKey(key)) }
      #expect(throws: VaultError.self, "byte \(index)") { try fixture.recover(.escrowKey(company)) }
    }
    try whole.write(to: url)
    try fixture.recover(.escrowKey(company)).close()
  }

  /// The member of a JSON object whose line holds the byte.
  private static func member(at index: Int, _ bytes: Data) -> String {
    let start = bytes[..<index].lastIndex(of: 10).map { $0 + 1 } ?? bytes.startIndex
    let end = bytes[index...].firstIndex(of: 10) ?? bytes.endIndex
    return String(decoding: bytes[start..<end], as: UTF8.self).split(separator: "\"").dropFirst().first.map(String.init)
      ?? ""
  }
}
