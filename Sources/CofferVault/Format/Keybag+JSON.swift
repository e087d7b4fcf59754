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
    let version: Int
    let derivation: Derivation
    let passcodeSlot: String
    let masterCommitment: String
    let complete: String
    let completeUnlessOpen: String
    let completeUnlessOpenPublic: String
    let untilFirstUnlock: String
    let none: String
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
      passcodeSlot: passcodeSlot.hexadecimal, masterCommitment: masterCommitment.hexadecimal,
      complete: complete.hexadecimal, completeUnlessOpen: completeUnlessOpen.hexadecimal,
      completeUnlessOpenPublic: completeUnlessOpenPublic.hexadecimal, untilFirstUnlock: untilFirstUnlock.hexadecimal,
      none: none.hexadecimal, metadata: metadata.hexadecimal, deviceCode: deviceCode.hexadecimal,
      masterCode: masterCode.hexadecimal)
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
    passcodeSlot = try field(wire.passcodeSlot, SecretKey.wrappedByteCount)
    masterCommitment = try field(wire.masterCommitment, 32)
    complete = try field(wire.complete, SecretKey.wrappedByteCount)
    completeUnlessOpen = try field(wire.completeUnlessOpen, SecretKey.wrappedByteCount)
    completeUnlessOpenPublic = try field(wire.completeUnlessOpenPublic, 32)
    untilFirstUnlock = try field(wire.untilFirstUnlock, SecretKey.wrappedByteCount)
    none = try field(wire.none, SecretKey.wrappedByteCount)
    metadata = try field(wire.metadata, SecretKey.wrappedByteCount)
    deviceCode = try field(wire.deviceCode, 32)
    masterCode = try field(wire.masterCode, 32)
  }
}
