internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

/// The wrapped keys of a vault, `keybag.json`.
///
/// The passcode key wraps a random master key, and the master key wraps the class keys: another way in (a recovery key)
/// is then one more wrapped master key. Class `none` hangs under the device key alone.
///
/// Two codes authenticate all fields together with `coffer.json`: one under the device key, checked before a passcode is
/// derived with the stored parameters, and one under the master key, so that the device secret alone cannot forge it.
struct Keybag {
  var derivation: PasscodeDerivation
  /// The master key wrapped under the passcode key.
  var passcodeSlot: [UInt8]
  var masterCommitment: [UInt8]
  /// Wrapped under the master key; see ``ProtectionClass``.
  var complete: [UInt8]
  var completeUnlessOpen: [UInt8]
  var completeUnlessOpenPublic: [UInt8]
  var untilFirstUnlock: [UInt8]
  /// Wrapped under the device key.
  var none: [UInt8]
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
    for field in [
      derivation.salt, passcodeSlot, masterCommitment, complete, completeUnlessOpen, completeUnlessOpenPublic,
      untilFirstUnlock, none, metadata,
    ] {
      writer.write(counted: field)
    }
    return writer.bytes
  }
}

/// The keys of an unlocked vault.
struct UnlockedKeys: Sendable {
  let classKeys: ClassKeys
  let metadata: SecretKey
}

extension Keybag {
  /// Draws the keys of a new vault.
  static func make(
    for description: VaultDescription, passcode: SecretBytes, derivation: PasscodeDerivation, deviceSecret: SecretBytes
  ) throws -> (Keybag, UnlockedKeys) {
    let device = try DeviceKeys(secret: deviceSecret, vault: description.id)
    let passcodeKey = try device.passcodeKey(derivation.key(for: passcode))
    let master = SecretKey()
    let agreement = AgreementKey()
    let complete = SecretKey()
    let untilFirstUnlock = SecretKey()
    let none = SecretKey()
    let metadata = SecretKey()
    var keybag = Keybag(
      derivation: derivation, passcodeSlot: try master.wrapped(under: passcodeKey),
      masterCommitment: master.commitment, complete: try complete.wrapped(under: master),
      completeUnlessOpen: try agreement.secretKey.wrapped(under: master),
      completeUnlessOpenPublic: agreement.publicKey, untilFirstUnlock: try untilFirstUnlock.wrapped(under: master),
      none: try none.wrapped(under: device.key), metadata: try metadata.wrapped(under: master))
    let bytes = keybag.authenticatedBytes(with: description)
    keybag.deviceCode = MessageAuthentication.code(for: bytes, key: device.authentication)
    keybag.masterCode = MessageAuthentication.code(for: bytes, key: master.derived("keybag authentication"))
    let keys = ClassKeys(
      complete: complete, completeUnlessOpen: agreement, untilFirstUnlock: untilFirstUnlock, none: none)
    return (keybag, UnlockedKeys(classKeys: keys, metadata: metadata))
  }

  /// Unwraps the keys. Throws `damaged` where a code does not fit and `wrongPasscode` where only the passcode does not.
  ///
  /// - Parameter deriving: gives the passcode's key; called once the parameters are known to be this vault's.
  func unlock(
    _ description: VaultDescription, deviceSecret: SecretBytes, deriving: (PasscodeDerivation) throws -> SecretKey
  ) throws -> UnlockedKeys {
    let device = try DeviceKeys(secret: deviceSecret, vault: description.id)
    let bytes = authenticatedBytes(with: description)
    guard MessageAuthentication.isValid(deviceCode, for: bytes, key: device.authentication) else {
      throw VaultError.damaged(what: "coffer.json or keybag.json")
    }
    let passcodeKey = try device.passcodeKey(deriving(derivation))
    guard let master = try? SecretKey(unwrapping: passcodeSlot, under: passcodeKey) else {
      throw VaultError.wrongPasscode
    }
    guard equalInConstantTime(master.commitment, masterCommitment),
      MessageAuthentication.isValid(masterCode, for: bytes, key: master.derived("keybag authentication"))
    else { throw VaultError.damaged(what: "coffer.json or keybag.json") }
    let agreement = try AgreementKey(SecretKey(unwrapping: completeUnlessOpen, under: master))
    guard agreement.publicKey == completeUnlessOpenPublic else { throw VaultError.damaged(what: "keybag.json") }
    return UnlockedKeys(
      classKeys: ClassKeys(
        complete: try SecretKey(unwrapping: complete, under: master), completeUnlessOpen: agreement,
        untilFirstUnlock: try SecretKey(unwrapping: untilFirstUnlock, under: master),
        none: try SecretKey(unwrapping: none, under: device.key)),
      metadata: try SecretKey(unwrapping: metadata, under: master))
  }
}

/// What is derived from the device secret.
private struct DeviceKeys {
  let key: SecretKey
  let authentication: SecretKey
  private let secret: SecretKey
  private let vault: VaultID

  init(secret bytes: SecretBytes, vault: VaultID) throws {
    do {
      secret = try SecretKey(bytes)
    } catch {
      throw VaultError.damaged(what: "the key store's device secret")
    }
    self.vault = vault
    key = secret.derived("device key", context: vault.bytes)
    authentication = secret.derived("device authentication", context: vault.bytes)
  }

  /// Tangles the derived passcode with the device secret, so that neither opens anything alone.
  func passcodeKey(_ derived: SecretKey) -> SecretKey {
    derived.combined(with: secret, "passcode key", context: vault.bytes)
  }
}
