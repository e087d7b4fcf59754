public import CofferSystem
internal import CryptoExtras
internal import Foundation

/// scrypt (RFC 7914) with bounds on its parameters: what is stored is read back, so a file that was altered can neither
/// weaken the derivation nor make it eat the machine.
public struct PasscodeDerivation: Hashable, Sendable {
  /// log2 of the cost N.
  public let costExponent: Int
  /// r. Memory is 128 · N · r bytes.
  public let blockSize: Int
  /// p.
  public let parallelism: Int
  /// 16 to 64 random bytes.
  public let salt: [UInt8]

  public static let costExponents = 14...20
  public static let blockSizes = 8...8
  public static let parallelisms = 1...4

  /// Throws `CryptoError.invalid` when a parameter is outside its range.
  public init(costExponent: Int, blockSize: Int = 8, parallelism: Int = 1, salt: [UInt8]) throws(CryptoError) {
    guard Self.costExponents.contains(costExponent), Self.blockSizes.contains(blockSize),
      Self.parallelisms.contains(parallelism), (16...64).contains(salt.count)
    else { throw .invalid("passcode derivation parameters") }
    self.costExponent = costExponent
    self.blockSize = blockSize
    self.parallelism = parallelism
    self.salt = salt
  }

  /// The same cost with a new random salt of 32 bytes.
  public func renewed() throws(CryptoError) -> PasscodeDerivation {
    try PasscodeDerivation(
      costExponent: costExponent, blockSize: blockSize, parallelism: parallelism, salt: Randomness.bytes(32))
  }

  /// Bytes of memory that one derivation takes.
  public var memory: Int { 128 * blockSize << costExponent }

  /// Throws `CryptoError.noMemory` where the system does not give so much at this moment.
  public func requireMemory() throws(CryptoError) {
    // And what is small beside it.
    guard FreeMemory.isThere(byteCount: memory + 1 << 20) else { throw .noMemory(byteCount: memory) }
  }

  /// Derives a key from a passcode. Throws `CryptoError.noMemory`.
  public func key(for passcode: SecretBytes) throws(CryptoError) -> SecretKey {
    do {
      return try clearingStack(.large) {
        try passcode.withUnsafeBytes { bytes in
          SecretKey(
            try KDF.Scrypt.deriveKey(
              from: bytes, salt: salt, outputByteCount: 32, rounds: 1 << costExponent, blockSize: blockSize,
              parallelism: parallelism))
        }
      }
    } catch {
      // With parameters within their ranges nothing else fails.
      throw .noMemory(byteCount: memory)
    }
  }
}
