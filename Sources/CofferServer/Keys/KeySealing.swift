internal import CofferCrypto
internal import CofferSystem

/// Seals a company's private keys for the store. What is sealed is bound to its company and its use.
struct KeySealing: Sendable {
  let serverKey: SecretKey

  /// What a sealed key is for.
  enum Use: String {
    case root, signing, delegated
    /// What an administrator's one-time codes are made of.
    case oneTimeCode = "one-time-code"
    /// An answer that is kept for a repeated request.
    case answer
    /// Where a page of a list ended: the number counts over all companies.
    case cursor
  }

  func seal(_ secret: [UInt8], tenant: String, use: Use, id: String) throws(CryptoError) -> [UInt8] {
    try Sealing.seal(secret, key: sealingKey(tenant), authenticating: context(tenant, use) + Array(":\(id)".utf8))
  }

  func open(_ sealed: [UInt8], tenant: String, use: Use, id: String) throws(CryptoError) -> [UInt8] {
    try Sealing.open(sealed, key: sealingKey(tenant), authenticating: context(tenant, use) + Array(":\(id)".utf8))
  }

  func seal(_ key: SigningKey, tenant: String, use: Use) throws(CryptoError) -> [UInt8] {
    var seed = key.seed.withUnsafeBytes { Array($0) }
    defer { seed.withUnsafeMutableBytes { overwrite($0) } }
    return try Sealing.seal(seed, key: sealingKey(tenant), authenticating: context(tenant, use))
  }

  /// Throws `CryptoError.notAuthentic` for another company's key, another use, or altered bytes.
  func open(_ sealed: [UInt8], tenant: String, use: Use) throws(CryptoError) -> SigningKey {
    var seed = try Sealing.open(sealed, key: sealingKey(tenant), authenticating: context(tenant, use))
    defer { seed.withUnsafeMutableBytes { overwrite($0) } }
    return try SigningKey(seed: seed.withUnsafeBytes { SecretBytes(copying: $0) })
  }

  private func sealingKey(_ tenant: String) -> SecretKey {
    serverKey.derived("coffer-server tenant keys", context: Array(tenant.utf8))
  }

  private func context(_ tenant: String, _ use: Use) -> [UInt8] { Array("\(use.rawValue):\(tenant)".utf8) }
}
