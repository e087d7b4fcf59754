internal import CofferCrypto
internal import CofferFiles

/// The keys that wrap the files' keys, one for each class.
struct ClassKeys: Sendable {
  let complete: SecretKey
  let completeUnlessOpen: AgreementKey
  let untilFirstUnlock: SecretKey
  let none: SecretKey

  func wrap(_ fileKey: SecretKey, for protection: ProtectionClass) throws(CryptoError) -> [UInt8] {
    switch protection {
    case .complete: try fileKey.wrapped(under: complete)
    case .completeUnlessOpen: try AgreementKey.wrap(fileKey, to: completeUnlessOpen.publicKey)
    case .untilFirstUnlock: try fileKey.wrapped(under: untilFirstUnlock)
    case .none: try fileKey.wrapped(under: none)
    }
  }

  func unwrap(_ wrapped: [UInt8], for protection: ProtectionClass) throws(CryptoError) -> SecretKey {
    switch protection {
    case .complete: try SecretKey(unwrapping: wrapped, under: complete)
    case .completeUnlessOpen: try completeUnlessOpen.unwrap(wrapped)
    case .untilFirstUnlock: try SecretKey(unwrapping: wrapped, under: untilFirstUnlock)
    case .none: try SecretKey(unwrapping: wrapped, under: none)
    }
  }
}
