internal import CofferCrypto
internal import CofferFiles

/// The keys that wrap the files' keys, one for each class.
struct ClassKeys: Sendable {
  /// Nil while the vault is locked.
  let complete: SecretKey?
  /// The private half is nil while the vault is locked.
  let completeUnlessOpen: AgreementKey?
  /// Wraps keys of new files of class complete-unless-open at any time.
  let completeUnlessOpenPublic: [UInt8]
  let untilFirstUnlock: SecretKey
  let none: SecretKey

  init(complete: SecretKey, completeUnlessOpen: AgreementKey, untilFirstUnlock: SecretKey, none: SecretKey) {
    self.init(
      complete: complete, completeUnlessOpen, completeUnlessOpen.publicKey, untilFirstUnlock: untilFirstUnlock,
      none: none)
  }

  private init(
    complete: SecretKey?, _ agreement: AgreementKey?, _ publicKey: [UInt8], untilFirstUnlock: SecretKey, none: SecretKey
  ) {
    self.complete = complete
    completeUnlessOpen = agreement
    completeUnlessOpenPublic = publicKey
    self.untilFirstUnlock = untilFirstUnlock
    self.none = none
  }

  /// What stays while the vault is locked.
  var withoutThoseOfAnUnlockedVault: ClassKeys {
    ClassKeys(complete: nil, nil, completeUnlessOpenPublic, untilFirstUnlock: untilFirstUnlock, none: none)
  }

  /// Throws `VaultError.locked` where the class's key is not there.
  func wrap(_ fileKey: SecretKey, for protection: ProtectionClass) throws -> [UInt8] {
    switch protection {
    case .complete: try fileKey.wrapped(under: Self.present(complete))
    case .completeUnlessOpen: try AgreementKey.wrap(fileKey, to: completeUnlessOpenPublic)
    case .untilFirstUnlock: try fileKey.wrapped(under: untilFirstUnlock)
    case .none: try fileKey.wrapped(under: none)
    }
  }

  /// Throws `VaultError.locked` where the class's key is not there, and `CryptoError.notAuthentic`.
  func unwrap(_ wrapped: [UInt8], for protection: ProtectionClass) throws -> SecretKey {
    switch protection {
    case .complete: try SecretKey(unwrapping: wrapped, under: Self.present(complete))
    case .completeUnlessOpen: try Self.present(completeUnlessOpen).unwrap(wrapped)
    case .untilFirstUnlock: try SecretKey(unwrapping: wrapped, under: untilFirstUnlock)
    case .none: try SecretKey(unwrapping: wrapped, under: none)
    }
  }

  private static func present<Key>(_ key: Key?) throws -> Key {
    guard let key else { throw VaultError.locked }
    return key
  }
}
