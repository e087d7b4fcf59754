internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

/// The wrapped keys of a vault, `keybag.json`.
///
/// The passcode key wraps a random master key, and the master key wraps the class keys: another way in (a recovery key,
/// a company's escrow key) is then one more wrapped master key. Class `none` hangs under the device key as well.
///
/// Two codes authenticate all fields together with `coffer.json`: one under the device key, checked before a passcode is
/// derived with the stored parameters, and one under the master key, so that the device secret alone cannot forge it.
struct Keybag {
  var derivation: PasscodeDerivation
  /// Whether ten wrong passcodes destroy the vault.
  var wipesAfterTenFailures = false
  /// Commits to the key store's component that the passcode key was made with; see ``RotationRecord``.
  var rotationCommitment: [UInt8] = []
  /// The master key wrapped under the passcode key.
  var passcodeSlot: [UInt8] = []
  /// The master key wrapped under the recovery key.
  var recoverySlot: [UInt8]?
  /// The master key sealed to a company's escrow key.
  var escrowSlot: EscrowSlot?
  var masterCommitment: [UInt8]
  /// Wrapped under the master key; see ``ProtectionClass``.
  var complete: [UInt8]
  var completeUnlessOpen: [UInt8]
  var completeUnlessOpenPublic: [UInt8]
  var untilFirstUnlock: [UInt8]
  /// Wrapped under the device key.
  var none: [UInt8] = []
  /// The same key under the master key: a recovery does without the device.
  var noneUnderMaster: [UInt8]
  var metadata: [UInt8]
  var deviceCode: [UInt8] = []
  var masterCode: [UInt8] = []

  /// What the codes authenticate: every field behind its length, after the digest of `coffer.json`.
  func authenticatedBytes(with description: VaultDescription) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(counted: Array("coffer keybag \(VaultFormat.version)".utf8))
    writer.write(fixed: Digest.sha256(description.bytes))
    writer.write(UInt8(derivation.costExponent))
    writer.write(UInt8(derivation.blockSize))
    writer.write(UInt8(derivation.parallelism))
    writer.write(UInt8(wipesAfterTenFailures ? 1 : 0))
    for field in [
      derivation.salt, rotationCommitment, passcodeSlot, recoverySlot ?? [], escrowSlot?.recipient.bytes ?? [],
      escrowSlot?.box.encapsulatedKey ?? [], escrowSlot?.box.ciphertext ?? [], masterCommitment, complete,
      completeUnlessOpen, completeUnlessOpenPublic, untilFirstUnlock, none, noneUnderMaster, metadata,
    ] {
      writer.write(counted: field)
    }
    return writer.bytes
  }
}

/// The master key, sealed to a company's public key.
struct EscrowSlot: Equatable {
  let recipient: HybridPublicKey
  let box: HybridBox
}

/// The keys of an unlocked vault.
struct UnlockedKeys: Sendable {
  let classKeys: ClassKeys
  let metadata: SecretKey
}

extension Keybag {
  /// Draws the keys of a new vault. Nothing opens it yet: see ``lock(with:for:)``.
  static func make(derivation: PasscodeDerivation, master: SecretKey) throws -> (Keybag, UnlockedKeys) {
    let agreement = AgreementKey()
    let complete = SecretKey()
    let untilFirstUnlock = SecretKey()
    let none = SecretKey()
    let metadata = SecretKey()
    let keybag = Keybag(
      derivation: derivation, masterCommitment: master.commitment, complete: try complete.wrapped(under: master),
      completeUnlessOpen: try agreement.secretKey.wrapped(under: master),
      completeUnlessOpenPublic: agreement.publicKey, untilFirstUnlock: try untilFirstUnlock.wrapped(under: master),
      noneUnderMaster: try none.wrapped(under: master), metadata: try metadata.wrapped(under: master))
    let keys = ClassKeys(
      complete: complete, completeUnlessOpen: agreement, untilFirstUnlock: untilFirstUnlock, none: none)
    return (keybag, UnlockedKeys(classKeys: keys, metadata: metadata))
  }

  /// What a passcode's slot is made with.
  struct PasscodeLock {
    let derivation: PasscodeDerivation
    /// What the derivation gave.
    let derived: SecretKey
    let device: DeviceKeys
    let rotation: SecretKey
    let master: SecretKey
  }

  /// Makes a passcode open the keybag on a device, in place of any other, and authenticates all of it.
  mutating func lock(with lock: PasscodeLock, for description: VaultDescription) throws {
    derivation = lock.derivation
    rotationCommitment = lock.rotation.commitment
    passcodeSlot = try lock.master.wrapped(under: lock.device.passcodeKey(lock.derived, rotation: lock.rotation))
    none = try SecretKey(unwrapping: noneUnderMaster, under: lock.master).wrapped(under: lock.device.key)
    authenticate(on: lock.device, master: lock.master, for: description)
  }

  /// Makes the codes anew, after a field was changed that opens nothing on this device.
  mutating func authenticate(on device: DeviceKeys, master: SecretKey, for description: VaultDescription) {
    let bytes = authenticatedBytes(with: description)
    deviceCode = MessageAuthentication.code(for: bytes, key: device.authentication)
    masterCode = MessageAuthentication.code(for: bytes, key: master.derived(Self.codeLabel))
  }

  /// Whether this device made it.
  func isAuthentic(_ description: VaultDescription, on device: DeviceKeys) -> Bool {
    MessageAuthentication.isValid(
      deviceCode, for: authenticatedBytes(with: description), key: device.authentication)
  }

  /// Unwraps the keys under what may be the master key. Throws `damaged` where it, or the keybag, is not what it was.
  func keys(under master: SecretKey, _ description: VaultDescription) throws -> UnlockedKeys {
    guard equalInConstantTime(master.commitment, masterCommitment),
      MessageAuthentication.isValid(
        masterCode, for: authenticatedBytes(with: description), key: master.derived(Self.codeLabel))
    else { throw VaultError.damaged(what: "coffer.json or keybag.json") }
    let agreement = try AgreementKey(SecretKey(unwrapping: completeUnlessOpen, under: master))
    guard agreement.publicKey == completeUnlessOpenPublic else { throw VaultError.damaged(what: "keybag.json") }
    return UnlockedKeys(
      classKeys: ClassKeys(
        complete: try SecretKey(unwrapping: complete, under: master), completeUnlessOpen: agreement,
        untilFirstUnlock: try SecretKey(unwrapping: untilFirstUnlock, under: master),
        none: try SecretKey(unwrapping: noneUnderMaster, under: master)),
      metadata: try SecretKey(unwrapping: metadata, under: master))
  }

  private static let codeLabel = "keybag authentication"
}
