public import CofferCrypto
public import CofferSystem
public import CofferVault

/// What the tests' vaults have in common.
public enum TestVault {
  public static var passcode: SecretBytes { Array("correct horse".utf8).withUnsafeBytes { SecretBytes(copying: $0) } }

  /// The cheapest derivation that is accepted.
  public static func derivation() throws -> PasscodeDerivation {
    try PasscodeDerivation(costExponent: 14, salt: Randomness.bytes(16))
  }

  /// Nothing commits by itself: what is durable is what the workload says.
  public static var options: VaultOptions {
    var options = VaultOptions()
    options.scheduler = IdleScheduler()
    return options
  }
}

private struct IdleScheduler: Scheduler {
  func schedule(afterSeconds seconds: Double, _ body: @escaping @Sendable () -> Void) {}
}
