internal import CofferCrypto
internal import CofferFiles

/// The key of a file that is about to be imported.
///
/// It is wrapped before the first byte is sealed, so that a lock which comes when everything is sealed takes nothing from
/// the file.
struct NewFileKey {
  let number: InodeNumber
  let protected: ProtectedKey
  let held: HeldCipher
  /// Becomes complete at the next unlock.
  let isDeposit: Bool

  /// Throws `locked` where a file of this class cannot be made now.
  init(_ number: InodeNumber, _ protection: ProtectionClass, isDeposit: Bool, _ vault: Vault) throws {
    let cipher = FileCipher(key: SecretKey(), vault: vault.id, inode: number)
    self.number = number
    self.isDeposit = isDeposit
    protected = ProtectedKey(
      protection: protection, wrapped: try vault.keys.wrap(cipher.key, for: protection),
      commitment: cipher.key.commitment)
    held = HeldCipher(cipher)
    try vault.keys.hold(held, for: protection)
  }

  /// A deposit's key for class complete; nil while the vault is locked.
  func completed(_ vault: Vault) throws -> ProtectedKey? {
    do {
      let key = try vault.keys.unwrap(protected.wrapped, for: protected.protection)
      return ProtectedKey(
        protection: .complete, wrapped: try vault.keys.wrap(key, for: .complete), commitment: protected.commitment)
    } catch VaultError.locked {
      return nil
    }
  }
}
