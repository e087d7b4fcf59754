import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Testing

@testable import CofferVault

/// A company's key in a keybag, and passcodes that it clears from afar.
@Suite struct ClearingTests {
  private static let context = Array("a company\0a device".utf8)
  private let old = PasscodeFixture.old
  private let new = PasscodeFixture.new
  private let company = HybridKey()

  @Test func `a cleared passcode is replaced by whoever has the code, once`() throws {
    let fixture = try PasscodeFixture()
    let offer = try fixture.sealed(to: company, Self.context)
    let (clearing, code) = try offer.clearing(with: company, now: fixture.time.now().seconds)
    try fixture.take(clearing, from: company, Self.context)
    // Until then the old passcode is the passcode.
    #expect(try fixture.refusal(old, on: fixture.disk) == nil)
    try Vault.requireClearing(
      code, at: fixture.disk + "/vault", keyStore: fixture.keyStore(fixture.disk), time: fixture.time)
    let vault = try fixture.recover(.clearingCode(code))
    #expect(!vault.isReadOnly)
    #expect(try vault.contents(of: VaultPath("kept")) == [1, 2, 3])
    #expect(try vault.unrecordedEscrowUses().map(\.means) == [.cleared, .clearing])
    try vault.forgetEscrowUses(vault.unrecordedEscrowUses())
    #expect(try vault.unrecordedEscrowUses() == [])
    let next = try #require(try vault.escrowOffer())
    try vault.close()
    #expect(try fixture.refusal(old, on: fixture.disk) == .wrongPasscode)
    #expect(try fixture.refusal(new, on: fixture.disk) == nil)
    // The device has begun anew: neither the code nor the clearing is good for anything.
    #expect(throws: VaultError.clearing(.nothingPending)) { try fixture.recover(.clearingCode(code), to: "third") }
    #expect(throws: VaultError.clearing(.notGenuine)) { try fixture.take(clearing, from: company, Self.context) }
    #expect(next.clearingKey != offer.clearingKey && next.escrowKey == offer.escrowKey)
    let (again, secondCode) = try next.clearing(with: company, now: fixture.time.now().seconds)
    try fixture.take(again, from: company, Self.context)
    try fixture.recover(.clearingCode(secondCode), to: "third").close()
    #expect(try fixture.refusal("third", on: fixture.disk) == nil)
  }

  @Test func `what is not made for this device, as it is now, by the key's holder is refused and changes nothing`()
    throws
  {
    let fixture = try PasscodeFixture()
    #expect(throws: VaultError.clearing(.noOffer)) { try fixture.take([0], from: company, Self.context) }
    let offer = try fixture.sealed(to: company, Self.context)
    let (clearing, _) = try offer.clearing(with: company, now: fixture.time.now().seconds)
    let store = fixture.keyStore(fixture.disk)
    let before = try store.read(.escrow, of: offer.vault)?.withUnsafeBytes { Array($0) }
    for index in clearing.indices {
      var altered = clearing
      altered[index] ^= 1 << UInt8(index % 8)
      #expect(throws: VaultError.clearing(.notGenuine), "byte \(index)") {
        try fixture.take(altered, from: company, Self.context)
      }
    }
    for length in 0..<clearing.count {
      #expect(throws: VaultError.clearing(.notGenuine)) {
        try fixture.take(Array(clearing.prefix(length)), from: company, Self.context)
      }
    }
    #expect(throws: VaultError.clearing(.notGenuine)) { try fixture.take(clearing + [0], from: company, Self.context) }
    #expect(throws: VaultError.clearing(.otherKey)) { try fixture.take(clearing, from: HybridKey(), Self.context) }
    #expect(throws: VaultError.clearing(.noOffer)) { try fixture.take(clearing, from: company, [1]) }
    let late = try offer.clearing(with: company, now: fixture.time.now().seconds - Clearing.lifetime - 1).clearing
    #expect(throws: VaultError.clearing(.expired)) { try fixture.take(late, from: company, Self.context) }
    // Another device of the same company, and the same device with an earlier key.
    let other = try PasscodeFixture()
    let foreign = try other.sealed(to: company, Self.context).clearing(with: company, now: fixture.time.now().seconds)
      .clearing
    #expect(throws: VaultError.clearing(.notGenuine)) { try fixture.take(foreign, from: company, Self.context) }
    // Somebody with the public halves alone: sealed to the right key, and not by who had the master key.
    let binding = Clearing.Binding(vault: offer.vault, context: offer.context, clearingKey: offer.clearingKey)
    let made = try Clearing(
      wrapping: SecretKey(), under: RecoveryKey(), in: binding, notAfter: .max,
      proof: EscrowProof(master: SecretKey(), vault: offer.vault))
    #expect(throws: VaultError.clearing(.notGenuine)) { try fixture.take(made.sealed(), from: company, Self.context) }
    #expect(try store.read(.escrow, of: offer.vault)?.withUnsafeBytes { Array($0) } == before)
    #expect(throws: VaultError.clearing(.nothingPending)) { try fixture.recover(.clearingCode(RecoveryKey())) }
    #expect(try fixture.refusal(old, on: fixture.disk) == nil)
  }

  @Test func `a clearing is taken once, opens for its code alone, and for an hour`() throws {
    let fixture = try PasscodeFixture()
    let offer = try fixture.sealed(to: company, Self.context)
    let (clearing, code) = try offer.clearing(with: company, now: fixture.time.now().seconds)
    try fixture.take(clearing, from: company, Self.context)
    #expect(throws: VaultError.clearing(.taken)) { try fixture.take(clearing, from: company, Self.context) }
    #expect(throws: VaultError.clearing(.wrongCode)) { try fixture.recover(.clearingCode(RecoveryKey())) }
    // Setting the civil clock gains nothing.
    fixture.time.advance(3599)
    fixture.time.setWall(1_800_000_000)
    let store = fixture.keyStore(fixture.disk)
    func require(_ code: RecoveryKey) throws {
      try Vault.requireClearing(code, at: fixture.disk + "/vault", keyStore: store, time: fixture.time)
    }
    try require(code)
    fixture.time.advance(1)
    #expect(throws: VaultError.clearing(.over)) { try require(code) }
    // It is erased when that is seen.
    #expect(throws: VaultError.clearing(.nothingPending)) { try fixture.recover(.clearingCode(code)) }
    #expect(throws: VaultError.clearing(.taken)) { try fixture.take(clearing, from: company, Self.context) }
    // Another one for the same device is another code; after a restart the civil clock counts.
    let (second, secondCode) = try offer.clearing(with: company, now: fixture.time.now().seconds)
    try fixture.take(second, from: company, Self.context)
    fixture.time.reboot()
    #expect(throws: VaultError.clearing(.wrongCode)) { try require(code) }
    try require(secondCode)
    let now = fixture.time.now().seconds
    for far in [-1, 3600, 3599] as [Int64] {
      fixture.time.setWall(now)
      let (clearing, code) = try offer.clearing(with: company, now: now)
      try fixture.take(clearing, from: company, Self.context)
      fixture.time.reboot()
      fixture.time.setWall(now + far)
      if far == 3599 {
        try fixture.recover(.clearingCode(code)).close()
      } else {
        #expect(throws: VaultError.clearing(.over)) { try require(code) }
        #expect(throws: VaultError.clearing(.nothingPending)) { try require(code) }
      }
    }
    let next = try #require(try fixture.offer(new))
    for _ in 0..<EscrowRecord.takenLimit {
      try fixture.take(
        next.clearing(with: company, now: fixture.time.now().seconds).clearing, from: company, Self.context)
    }
    #expect(throws: VaultError.clearing(.tooMany)) {
      try fixture.take(
        next.clearing(with: company, now: fixture.time.now().seconds).clearing, from: company, Self.context)
    }
  }

  @Test func `the old passcode, a new one, another key, none, and a wipe end what was cleared`() throws {
    for end in ["old", "passcode", "other", "none", "wipe"] {
      let fixture = try PasscodeFixture()
      let offer = try fixture.sealed(to: company, Self.context)
      let (clearing, code) = try offer.clearing(with: company, now: fixture.time.now().seconds)
      try fixture.take(clearing, from: company, Self.context)
      let late = try offer.clearing(with: company, now: fixture.time.now().seconds).clearing
      switch end {
      case "old": try fixture.withAccess(old) { vault, access in try vault.endClearing(with: access) }
      case "passcode": try fixture.change()
      case "other": _ = try fixture.sealed(to: HybridKey(), Self.context)
      case "none":
        try fixture.withAccess(old) { vault, access in
          let byOther = try vault.unseal(fromEscrowKey: HybridKey().publicKey, with: &access)
          let byOwn = try vault.unseal(fromEscrowKey: company.publicKey, with: &access)
          let (offer, left) = (try vault.escrowOffer(), try vault.keybagSummary().escrowKey)
          #expect(!byOther && byOwn && offer == nil && left == nil)
        }
      default:
        _ = try Vault.wipe(at: fixture.disk + "/vault", keyStore: fixture.keyStore(fixture.disk), scope: .everyCopy)
      }
      #expect(throws: VaultError.self, "\(end)") { try fixture.recover(.clearingCode(code), to: "third") }
      #expect(throws: VaultError.self, "\(end)") { try fixture.take(late, from: company, Self.context) }
      if end != "wipe" {
        #expect(try fixture.refusal(end == "passcode" ? new : old, on: fixture.disk) == nil, "\(end)")
      }
    }
  }

  @Test func `who holds the company's key clears nothing that a server made up`() throws {
    let fixture = try PasscodeFixture()
    let offer = try fixture.sealed(to: company, Self.context)
    let other = try PasscodeFixture().sealed(to: company, Self.context)
    func expectRefusal(_ made: EscrowOffer, _ text: String) {
      #expect(throws: VaultError.self, "\(text)") { try made.clearing(with: company, now: fixture.time.now().seconds) }
    }
    func changed(
      vault: VaultID? = nil, context: [UInt8]? = nil, slot: HybridBox? = nil, key: HybridPublicKey? = nil,
      signature: [UInt8]? = nil
    ) throws -> EscrowOffer {
      try EscrowOffer(
        vault: vault ?? offer.vault, context: context ?? offer.context, escrowKey: offer.escrowKey,
        slot: slot ?? offer.slot, clearingKey: key ?? offer.clearingKey, signature: signature ?? offer.signature)
    }
    _ = try changed().clearing(with: company, now: fixture.time.now().seconds)
    expectRefusal(try changed(key: HybridKey().publicKey), "the server's own clearing key")
    expectRefusal(try changed(vault: other.vault), "another vault")
    expectRefusal(try changed(context: [1]), "another company or device")
    expectRefusal(try changed(slot: other.slot), "another vault's slot")
    expectRefusal(try changed(signature: other.signature), "another vault's signature")
    // A master key of the server's own, with all that follows from it.
    let master = SecretKey()
    let slot = EscrowSlot(
      recipient: company.publicKey,
      box: try company.publicKey.seal(master, info: Keybag.escrowInfo, authenticating: offer.vault.bytes))
    let proof = try EscrowProof(master: master, vault: offer.vault)
    let key = HybridKey().publicKey
    let forged = try EscrowOffer(
      vault: offer.vault, context: offer.context, escrowKey: company.publicKey, slot: slot.box, clearingKey: key,
      signature: proof.key.signature(
        for: EscrowOffer.message(offer.vault, offer.context, slot, clearingKey: key)))
    let clearing = try forged.clearing(with: company, now: fixture.time.now().seconds).clearing
    #expect(throws: VaultError.clearing(.notGenuine)) { try fixture.take(clearing, from: company, Self.context) }
    #expect(throws: VaultError.wrongEscrowKey) { try offer.clearing(with: HybridKey(), now: 0) }
  }

  @Test(arguments: [true, false])
  func `a company's key that is put in or taken out leaves the passcode wherever it is cut`(isTakenOut: Bool) throws {
    let fixture = try PasscodeFixture()
    if isTakenOut { _ = try fixture.sealed(to: company, Self.context) }
    fixture.startHere()
    try fixture.withAccess(old, recorded: true) { vault, access in
      if isTakenOut {
        _ = try vault.unseal(fromEscrowKey: company.publicKey, with: &access)
      } else {
        _ = try vault.seal(toEscrowKey: company.publicKey, context: Self.context, with: &access)
      }
    }
    var found: [Bool: Int] = [:]
    try fixture.cuts(reorderings: 1) { position, fate, write in
      let place = try MemoryFolder()
      try write(place("disk"))
      let text = "cut behind step \(position), \(fate)"
      #expect(try fixture.refusal(old, on: place("disk")) == nil, "\(text)")
      let vault = try fixture.open(old, on: place("disk"))
      found[try vault.keybagSummary().escrowKey != nil, default: 0] += 1
      // What is handed in then is good for a clearing, whatever was cut.
      if let offer = try vault.escrowOffer() { _ = try offer.clearing(with: company, now: fixture.time.now().seconds) }
      let store = fixture.keyStore(place("disk"))
      let anchor = try #require(try store.read(.anchor, of: vault.id))
      #expect(try Anchor(decoding: anchor.withUnsafeBytes { Array($0) }).nextKeybagDigest == nil, "\(text)")
      try vault.close()
    }
    #expect(found[true, default: 0] > 5 && found[false, default: 0] > 5, "\(found)")
  }

  @Test func `a recovery with a code that is cut anywhere leaves a way in, and never both`() throws {
    let fixture = try PasscodeFixture()
    let (clearing, code) = try fixture.sealed(to: company, Self.context).clearing(
      with: company, now: fixture.time.now().seconds)
    try fixture.take(clearing, from: company, Self.context)
    fixture.startHere()
    try fixture.recover(.clearingCode(code)).close()
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
      #expect((byOld == nil) != (byNew == nil), "\(text)")
      try write(place("disk"))
      let store = fixture.keyStore(place("disk"))
      let isCleared = Result {
        try fixture.recover(.clearingCode(code), to: "third", on: place("disk"), keyStore: store).close()
      }
      // The code goes with the old passcode: whoever was cut can go on, and nothing is left after its use.
      if byNew == nil {
        #expect(throws: VaultError.clearing(.nothingPending), "\(text)") { try isCleared.get() }
      } else {
        try isCleared.get()
        #expect(try fixture.refusal("third", on: place("disk")) == nil, "\(text)")
      }
      // And its use is known.
      try write(place("disk"))
      let vault = try fixture.open(byNew == nil ? new : old, on: place("disk"))
      if byNew == nil { #expect(try vault.unrecordedEscrowUses().map(\.means) == [.cleared, .clearing], "\(text)") }
      try vault.close()
      outcomes[byNew == nil ? "new" : "old", default: 0] += 1
    }
    #expect(outcomes["new", default: 0] > 5 && outcomes["old", default: 0] > 5, "\(outcomes)")
  }

  @Test func `every reason fits into a receipt`() {
    let faults: [ClearingFault] = [
      .noOffer, .otherKey, .notGenuine, .taken, .tooMany, .nothingPending, .expired, .over, .wrongCode,
    ]
    for fault in faults { #expect(fault.description.utf8.count < 200, "\(fault)") }
  }

  @Test func `the company's key itself is noted before it opens anything`() throws {
    let fixture = try PasscodeFixture()
    _ = try fixture.sealed(to: company, Self.context)
    let vault = try fixture.recover(.escrowKey(company))
    #expect(try vault.unrecordedEscrowUses().map(\.means) == [.escrowKey])
    #expect(try vault.escrowOffer() != nil)
    try vault.close()
    let key = RecoveryKey()
    let own = try PasscodeFixture(options: KeybagOptions(recoveryKey: key))
    let recovered = try own.recover(.recoveryKey(key))
    #expect(try recovered.unrecordedEscrowUses() == [])
    try recovered.close()
  }
}

extension PasscodeFixture {
  /// Opens the vault with a passcode, and closes it after `body`.
  func withAccess<Result>(
    _ passcode: String, recorded: Bool = false, _ body: (Vault, inout VaultAccess) throws -> Result
  ) throws -> Result {
    let files = recorded ? FileSystem(faults: recorder) : FileSystem()
    let place = try VaultPlace(
      at: disk + "/vault", files: files, keyStore: keyStore(disk, files), time: time,
      scheduler: VaultOptions().scheduler)
    let opened = try place.locked.unlock(passcode: { VaultFixture.passcode(passcode) }, deriving: derive)
    let vault = try place.vault(opened, options: TestVault.options)
    defer { try? vault.close() }
    var access = VaultAccess(opened: opened)
    return try body(vault, &access)
  }

  /// Seals the vault to a key, and returns what the device then hands in.
  func sealed(to key: HybridKey, _ context: [UInt8]) throws -> EscrowOffer {
    try withAccess(Self.old, recorded: true) { vault, access in
      let isChanged = try vault.seal(toEscrowKey: key.publicKey, context: context, with: &access)
      let (present, offer) = (try vault.keybagSummary().escrowKey, try vault.escrowOffer())
      // Again it does nothing.
      let isChangedAgain = try vault.seal(toEscrowKey: key.publicKey, context: context, with: &access)
      let again = try vault.escrowOffer()
      #expect(isChanged && present == key.publicKey && !isChangedAgain && again == offer)
      return try #require(offer)
    }
  }

  func offer(_ passcode: String) throws -> EscrowOffer? {
    try withAccess(passcode) { vault, _ in try vault.escrowOffer() }
  }

  func take(_ clearing: [UInt8], from key: HybridKey, _ context: [UInt8]) throws {
    let vault = try LockedVault(
      in: VaultFolder(opening: disk + "/vault", files: FileSystem(faults: recorder)),
      keyStore: keyStore(disk, FileSystem(faults: recorder)), time: time)
    try vault.withLock { try vault.take(clearing) { try $0.require(key.publicKey, context) } }
  }
}
