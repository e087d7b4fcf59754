internal import CofferCrypto
internal import CofferSystem
internal import Foundation

extension Keybag {
  private struct Wire: Codable {
    struct Derivation: Codable {
      let algorithm: String
      let costExponent: Int
      let blockSize: Int
      let parallelism: Int
      let salt: String
    }
    struct Escrow: Codable {
      let publicKey: String
      let encapsulatedKey: String
      let sealedKey: String
    }
    let version: Int
    let derivation: Derivation
    let wipesAfterTenFailures: Bool
    let rotationCommitment: String
    let passcodeSlot: String
    let recoverySlot: String?
    let escrowSlot: Escrow?
    let masterCommitment: String
    let complete: String
    let completeUnlessOpen: String
    let completeUnlessOpenPublic: String
    let untilFirstUnlock: String
    let none: String
    let noneUnderMaster: String
    let metadata: String
    let deviceCode: String
    let masterCode: String
  }

  /// The file's bytes: JSON, byte strings as hexadecimal digits.
  func encoded() throws -> [UInt8] {
    let wire = Wire(
      version: VaultFormat.version,
      derivation: Wire.Derivation(
        algorithm: "scrypt", costExponent: derivation.costExponent, blockSize: derivation.blockSize,
        parallelism: derivation.parallelism, salt: derivation.salt.hexadecimal),
      wipesAfterTenFailures: wipesAfterTenFailures, rotationCommitment: rotationCommitment.hexadecimal,
      passcodeSlot: passcodeSlot.hexadecimal, recoverySlot: recoverySlot?.hexadecimal,
      escrowSlot: escrowSlot.map {
        Wire.Escrow(
          publicKey: $0.recipient.bytes.hexadecimal, encapsulatedKey: $0.box.encapsulatedKey.hexadecimal,
          sealedKey: $0.box.ciphertext.hexadecimal)
      },
      masterCommitment: masterCommitment.hexadecimal,
      complete: complete.hexadecimal, completeUnlessOpen: completeUnlessOpen.hexadecimal,
      completeUnlessOpenPublic: completeUnlessOpenPublic.hexadecimal, untilFirstUnlock: untilFirstUnlock.hexadecimal,
      none: none.hexadecimal, noneUnderMaster: noneUnderMaster.hexadecimal, metadata: metadata.hexadecimal,
      deviceCode: deviceCode.hexadecimal, masterCode: masterCode.hexadecimal)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    return Array(try encoder.encode(wire)) + [10]
  }

  /// Parses the file. Throws `damaged` for anything but a whole keybag of this version.
  init(parsing bytes: [UInt8]) throws(VaultError) {
    func field(_ text: String, _ count: Int) throws(VaultError) -> [UInt8] {
      guard let bytes = [UInt8](hexadecimal: text), bytes.count == count else { throw .damaged(what: "keybag.json") }
      return bytes
    }
    guard let wire = try? JSONDecoder().decode(Wire.self, from: Data(bytes)), wire.version == VaultFormat.version,
      wire.derivation.algorithm == "scrypt", let salt = [UInt8](hexadecimal: wire.derivation.salt),
      let derivation = try? PasscodeDerivation(
        costExponent: wire.derivation.costExponent, blockSize: wire.derivation.blockSize,
        parallelism: wire.derivation.parallelism, salt: salt)
    else { throw .damaged(what: "keybag.json") }
    self.derivation = derivation
    wipesAfterTenFailures = wire.wipesAfterTenFailures
    rotationCommitment = try field(wire.rotationCommitment, 32)
    passcodeSlot = try field(wire.passcodeSlot, SecretKey.wrappedByteCount)
    if let slot = wire.recoverySlot { recoverySlot = try field(slot, SecretKey.wrappedByteCount) }
    if let slot = wire.escrowSlot {
      guard let recipient = try? HybridPublicKey(bytes: field(slot.publicKey, HybridPublicKey.byteCount)) else {
        throw .damaged(what: "keybag.json")
      }
      escrowSlot = EscrowSlot(
        recipient: recipient,
        box: HybridBox(
          encapsulatedKey: try field(slot.encapsulatedKey, HybridBox.encapsulatedKeyByteCount),
          ciphertext: try field(slot.sealedKey, HybridBox.ciphertextByteCount)))
    }
    masterCommitment = try field(wire.masterCommitment, 32)
    complete = try field(wire.complete, SecretKey.wrappedByteCount)
    completeUnlessOpen = try field(wire.completeUnlessOpen, SecretKey.wrappedByteCount)
    completeUnlessOpenPublic = try field(wire.completeUnlessOpenPublic, 32)
    untilFirstUnlock = try field(wire.untilFirstUnlock, SecretKey.wrappedByteCount)
    none = try field(wire.none, SecretKey.wrappedByteCount)
    noneUnderMaster = try field(wire.noneUnderMaster, SecretKey.wrappedByteCount)
    metadata = try field(wire.metadata, SecretKey.wrappedByteCount)
    deviceCode = try field(wire.deviceCode, 32)
    masterCode = try field(wire.masterCode, 32)
  }
}
