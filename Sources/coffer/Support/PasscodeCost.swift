internal import CofferCrypto
internal import CofferSystem

/// How much work a passcode costs on this machine.
enum PasscodeCost {
  /// Memory from 32 MiB to 256 MiB.
  private static let exponents = 15...18
  /// A try shall take about half a second, and not much more.
  private static let limit = 0.7

  /// The parameters by which a try takes about half a second here: the cheapest ones are timed, and each doubling of N
  /// doubles the time. Throws where there is no memory for them: a vault that is made at such a moment shall not be cheaper to try for good.
  static func chosen() throws -> PasscodeDerivation {
    let salt = Randomness.bytes(32)
    var exponent = exponents.lowerBound
    let trial = try PasscodeDerivation(costExponent: exponent, salt: salt)
    let passed = try ContinuousClock().measure { _ = try trial.key(for: SecretBytes(count: 8) { _ in }) }
    var seconds = Double(passed.components.seconds) + Double(passed.components.attoseconds) * 1e-18
    while exponent < exponents.upperBound, 2 * seconds <= limit {
      exponent += 1
      seconds *= 2
    }
    let chosen = try PasscodeDerivation(costExponent: exponent, salt: salt)
    try chosen.requireMemory()
    return chosen
  }
}
