public import CofferSystem

/// What a key store keeps for a vault, outside the vault's folder.
public enum KeyStoreItem: String, CaseIterable, Sendable {
  /// 32 random bytes without which no passcode opens the vault.
  case deviceSecret = "device-secret"
  /// What a change of the passcode draws anew: one component of the passcode's key, or two while a change is under way.
  case rotation
  /// How many passcodes were tried in vain, and since when nothing may be tried.
  case attempts
  /// The newest state of the vault that this device has seen; what detects an older copy.
  case anchor
  /// That the device belongs to a company, and the newest policy it applied; what deleting the vault's files cannot undo.
  case enrolment
  /// Where the folder lies in which the vault was changed last; by what a copy of it is told from the vault.
  case place
  /// What lets a company's escrow key have a new passcode set on this device.
  case escrow
  /// That a wipe of the vault has begun: nothing opens it any more. The last item to go.
  case wiped

  /// Whether a key hangs on it, so that its old bytes must not stay.
  var isSecret: Bool { self == .deviceSecret || self == .rotation || self == .escrow }
}

/// A place for a device's secrets: a folder, a TPM, a keychain.
///
/// Each write is durable and atomic when it returns: a crash leaves the old value or the new.
public protocol KeyStore: Sendable {
  /// The value, or nil where there is none: of a secret also where it was overwritten and could not be removed.
  func read(_ item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) -> SecretBytes?
  func write(_ value: SecretBytes, as item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError)
  /// Removes everything that is kept for a vault but for `kept`, secrets first: once the first of them is gone, no
  /// passcode opens it.
  func removeAll(of vault: VaultID, keeping kept: Set<KeyStoreItem>) throws(KeyStoreError)
  /// Whether anything is kept on which a key of the vault hangs; also where it is there and cannot be read.
  func holdsSecrets(of vault: VaultID) throws(KeyStoreError) -> Bool
  /// Runs `body` while nobody else, in this process or another, runs one for the same vault. Waits for them.
  ///
  /// Not to be called within itself. Throws ``KeyStoreError/nothingKept`` where there is nothing for the vault, and what
  /// `body` throws.
  func withLock<Result>(of vault: VaultID, _ body: () throws -> Result) throws -> Result
}

extension KeyStore {
  /// Removes everything that is kept for a vault.
  public func removeAll(of vault: VaultID) throws(KeyStoreError) { try removeAll(of: vault, keeping: []) }

  /// Whether the item is there, also where nothing can be made of it, or others could read it.
  public func keeps(_ item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) -> Bool {
    switch Result(catching: { () throws(KeyStoreError) in try read(item, of: vault) }) {
    case .success(let value): return value != nil
    case .failure(.damaged), .failure(.exposed): return true
    case .failure(let error): throw error
    }
  }

  public func holdsSecrets(of vault: VaultID) throws(KeyStoreError) -> Bool {
    for item in KeyStoreItem.allCases where item.isSecret {
      if try read(item, of: vault) != nil { return true }
    }
    return false
  }
}

/// Why a key store does not answer.
public enum KeyStoreError: Error, Equatable, Sendable, CustomStringConvertible {
  case system(SystemError)
  /// Others than the owner may read or change what is kept.
  case exposed
  /// A value is larger than any that is ever stored.
  case damaged(KeyStoreItem)
  /// Nothing is kept for this vault.
  case nothingKept

  /// The process or the system lacks something that it may have later.
  public var isShortage: Bool {
    if case .system(let error) = self { error.isShortage } else { false }
  }

  public var description: String {
    switch self {
    case .system(let error): "the key store cannot be used: \(error)"
    case .exposed: "the key store's folder must belong to you and be closed to others; run chmod 700 on it"
    case .damaged(let item): "the key store's \(item.rawValue) is damaged"
    case .nothingKept: "the key store keeps nothing for this vault"
    }
  }
}
