internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

/// What is derived from the device secret.
struct DeviceKeys {
  /// Wraps class `none`.
  let key: SecretKey
  /// Keys the keybag's device code.
  let authentication: SecretKey
  /// Keys the code of the attempts.
  let attempts: SecretKey
  /// Seals what is kept for a company's escrow key.
  let escrow: SecretKey
  private let marks: KeyedHash
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
    attempts = secret.derived("attempts", context: vault.bytes)
    escrow = secret.derived("escrow record", context: vault.bytes)
    marks = KeyedHash(key: secret.derived("wrong passcodes", context: vault.bytes))
  }

  /// Tangles the derived passcode with the device secret and the rotation's component, so that none opens anything alone.
  func passcodeKey(_ derived: SecretKey, rotation: SecretKey) -> SecretKey {
    derived.combined(with: [secret, rotation], "passcode key", context: vault.bytes)
  }

  /// By what a wrong passcode is known again. Of the key that scrypt gave, never of the passcode: most wrong ones are
  /// nearly right, and a fast hash of one would make the right one cheap to find.
  func mark(_ derived: SecretKey) -> [UInt8] { marks.code(for: derived.commitment) }
}
