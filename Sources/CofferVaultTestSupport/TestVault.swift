public import CofferCrypto
public import CofferSystem

/// What the tests' vaults have in common.
public enum TestVault {
  public static var passcode: SecretBytes { Array("correct horse".utf8).withUnsafeBytes { SecretBytes(copying: $0) } }

  /// The cheapest derivation that is accepted.
  public static func derivation() throws -> PasscodeDerivation {
    try PasscodeDerivation(costExponent: 14, salt: Randomness.bytes(16))
  }
}
