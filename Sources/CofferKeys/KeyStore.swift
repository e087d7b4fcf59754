public import CofferSystem

/// What a key store keeps for a vault, outside the vault's folder.
public enum KeyStoreItem: String, CaseIterable, Sendable {
  /// 32 random bytes without which no passcode opens the vault.
  case deviceSecret = "device-secret"
  /// The newest state of the vault that this device has seen; what detects an older copy.
  case anchor
  /// That the device belongs to a company, and the newest policy it applied; what deleting the vault's files cannot undo.
  case enrolment
}

/// A place for a device's secrets: a folder, a TPM, a keychain.
///
/// Each write is durable and atomic when it returns: a crash leaves the old value or the new.
public protocol KeyStore: Sendable {
  /// The value, or nil where there is none.
  func read(_ item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) -> SecretBytes?
  func write(_ value: SecretBytes, as item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError)
  /// Removes everything that is kept for a vault.
  func removeAll(of vault: VaultID) throws(KeyStoreError)
}

/// Why a key store does not answer.
public enum KeyStoreError: Error, Equatable, Sendable, CustomStringConvertible {
  case system(SystemError)
  /// Others than the owner may read or change what is kept.
  case exposed
  /// A value is larger than any that is ever stored.
  case damaged(KeyStoreItem)

  public var description: String {
    switch self {
    case .system(let error): "the key store cannot be used: \(error)"
    case .exposed: "the key store's folder must belong to you and be closed to others; run chmod 700 on it"
    case .damaged(let item): "the key store's \(item.rawValue) is damaged"
    }
  }
}
