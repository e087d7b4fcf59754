import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Testing

@testable import CofferVault

@Suite struct PasscodeChangeTests {
  private let old = PasscodeFixture.old
  private let new = PasscodeFixture.new

  @Test func `a change that is cut anywhere leaves exactly one passcode, and a vault that can be written`() throws {
    let fixture = try PasscodeFixture()
    try fixture.change()
    let stepCount = fixture.recorder.log.steps.count - fixture.start
    var opened: [String: Int] = [:]
    var hasChanged = false
    try fixture.cuts(reorderings: 2) { position, fate, write in
      let place = try MemoryFolder()
      func refusal(_ passcode: String) throws -> VaultError? {
        try write(place("disk"))
        return try fixture.refusal(passcode, on: place("disk"))
      }
      let (byOld, byNew) = (try refusal(old), try refusal(new))
      let text = "cut behind step \(position) of \(stepCount), \(fate): \(byOld as Any), \(byNew as Any)"
      #expect((byOld == nil) != (byNew == nil), "\(text)")
      #expect((byOld ?? byNew) == .wrongPasscode, "\(text)")
      opened[byOld == nil ? old : new, default: 0] += 1
      // Once all that was written counts, the change goes one way.
      if case .everything = fate {
        #expect(!hasChanged || byNew == nil, "\(text)")
        hasChanged = byNew == nil
      }
      // What opened is complete: the key store has one component, the anchor one keybag.
      try write(place("disk"))
      let vault = try fixture.open(byOld == nil ? old : new, on: place("disk"))
      try vault.close()
      let store = fixture.keyStore(place("disk"))
      let rotation = try #require(try store.read(.rotation, of: vault.id))
      #expect(try RotationRecord(decoding: rotation).components.count == 1)
      let anchor = try #require(try store.read(.anchor, of: vault.id))
      let seen = try Anchor(decoding: anchor.withUnsafeBytes { Array($0) })
      #expect(seen.nextKeybagDigest == nil)
      #expect(try seen.keybagDigest == Digest.sha256(vault.folder.contents(of: VaultFormat.keybag) ?? []))
    }
    #expect(opened[old, default: 0] > 10 && opened[new, default: 0] > 10)
    #expect(hasChanged)
  }

  @Test func `an old keybag opens with no passcode, and the present one put back does`() throws {
    let fixture = try PasscodeFixture()
    let keybag = fixture.disk + "/vault/keybag.json"
    let before = try Data(contentsOf: URL(filePath: keybag))
    try fixture.change()
    let after = try Data(contentsOf: URL(filePath: keybag))
    #expect(try fixture.refusal(old, on: fixture.disk) == .wrongPasscode)
    #expect(try fixture.refusal(new, on: fixture.disk) == nil)
    try before.write(to: URL(filePath: keybag))
    for passcode in [old, new] { #expect(try fixture.refusal(passcode, on: fixture.disk) == .outdatedKeybag) }
    try after.write(to: URL(filePath: keybag))
    #expect(try fixture.refusal(new, on: fixture.disk) == nil)
    // And again, back to the passcode that it was: still another keybag.
    try fixture.change(from: new, to: old)
    for bytes in [before, after] {
      try bytes.write(to: URL(filePath: keybag))
      for passcode in [old, new] { #expect(try fixture.refusal(passcode, on: fixture.disk) == .outdatedKeybag) }
    }
  }

  @Test func `an open vault changes its passcode and goes on`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    #expect(throws: VaultError.wrongPasscode) {
      try vault.changePasscode(
        old: { VaultFixture.passcode(new) }, new: { throw VaultError.badHandle })
    }
    let before = try vault.keybagSummary()
    try vault.changePasscode(
      old: { VaultFixture.passcode() }, new: { VaultFixture.passcode(new) },
      derivation: PasscodeDerivation(costExponent: 15, salt: Randomness.bytes(16)),
      options: KeybagOptions(wipesAfterTenFailures: true))
    let after = try vault.keybagSummary()
    #expect(after.derivation.costExponent == 15 && after.derivation.salt != before.derivation.salt)
    #expect(after.wipesAfterTenFailures && !before.wipesAfterTenFailures)
    try vault.makeDirectory(at: VaultPath("made after"))
    _ = try Vault.unlocked(
      in: vault.folder, id: vault.id, keyStore: fixture.keyStore, time: SystemTime(),
      passcode: VaultFixture.passcode(new))
    #expect(throws: VaultError.wrongPasscode) {
      try Vault.unlocked(
        in: vault.folder, id: vault.id, keyStore: fixture.keyStore, time: SystemTime(),
        passcode: VaultFixture.passcode())
    }
    try vault.close()
    #expect(throws: VaultError.wrongPasscode) { try fixture.open() }
    let again = try fixture.open(new)
    #expect(!again.isReadOnly)
    #expect(try again.list(.root).count == 1)
    try again.close()
  }

  @Test func `a wrong old passcode changes nothing, and the new one is not asked for`() throws {
    let fixture = try VaultFixture()
    try fixture.create().close()
    let keybag = try Data(contentsOf: URL(filePath: fixture.vaultPath + "/keybag.json"))
    #expect(throws: VaultError.wrongPasscode) {
      try Vault.changePasscode(
        at: fixture.vaultPath, keyStore: fixture.keyStore, old: { VaultFixture.passcode("wrong") },
        new: {
          Issue.record("asked")
          return VaultFixture.passcode()
        })
    }
    #expect(try Data(contentsOf: URL(filePath: fixture.vaultPath + "/keybag.json")) == keybag)
    try fixture.open().close()
  }

  @Test func `a change that fails at any call leaves one passcode`() throws {
    let fixture = try PasscodeFixture()
    try FileManager.default.moveItem(atPath: fixture.disk, toPath: fixture.folder("before"))
    var count = 0
    var changes = 0
    while true {
      let disk = fixture.folder("disk \(count)")
      func copy() throws { try FileManager.default.copyItem(atPath: fixture.folder("before"), toPath: disk) }
      try copy()
      let plan = FaultTests.FailingCall(code: 28)
      plan.arm(count)
      let hasThrown = (try? fixture.change(on: disk, files: FileSystem(faults: plan))) == nil
      // Opened the other way round on a copy: a wrong passcode counts.
      try FileManager.default.copyItem(atPath: disk, toPath: disk + " copy")
      let (byNew, byOld) = (try fixture.refusal(new, on: disk), try fixture.refusal(old, on: disk + " copy"))
      #expect((byNew == nil) != (byOld == nil), "call \(count): \(byNew as Any), \(byOld as Any)")
      #expect(byNew == nil || hasThrown, "call \(count)")
      changes += byNew == nil ? 1 : 0
      count += 1
      if plan.failed == nil { break }
      try #require(count < 300)
    }
    #expect(count > 40 && changes > 5 && changes < count)
  }
}
