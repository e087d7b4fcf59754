public import CofferCrypto
public import CofferSystem

/// What is kept of a password: scrypt's parameters and a value that commits to the derived key.
public struct PasswordRecord: Sendable {
  public let derivation: PasscodeDerivation
  public let commitment: [UInt8]

  /// 128 MiB for each derivation.
  public static let costExponent = 17

  /// A record as it was stored.
  public init(derivation: PasscodeDerivation, commitment: [UInt8]) {
    self.derivation = derivation
    self.commitment = commitment
  }

  /// The record of a new password. Throws `CryptoError` when the derivation has not the memory it needs.
  public init(_ password: SecretBytes, costExponent: Int = Self.costExponent) throws(CryptoError) {
    derivation = try PasscodeDerivation(costExponent: costExponent, salt: Randomness.bytes(16))
    commitment = try derivation.key(for: password).commitment
  }

  /// Whether `password` is the one that the record was made of. Compares in constant time.
  public func matches(_ password: SecretBytes) throws(CryptoError) -> Bool {
    equalInConstantTime(try derivation.key(for: password).commitment, commitment)
  }
}
