internal import CofferSystem
internal import Crypto
internal import Foundation

/// An X25519 private key (RFC 7748) to which keys are wrapped by one-pass Diffie-Hellman: whoever has the public half
/// can wrap, only the private half unwraps. It is what lets a file be created while the class key is gone.
public struct AgreementKey: Sendable, CustomStringConvertible, CustomReflectable {
  private let key: Curve25519.KeyAgreement.PrivateKey

  /// A new random key.
  public init() { key = clearingStack(.large) { Curve25519.KeyAgreement.PrivateKey() } }

  /// Throws `CryptoError.invalid` unless there are 32 bytes.
  public init(_ secret: SecretKey) throws(CryptoError) {
    do {
      key = try clearingStack(.large) {
        try secret.key.withUnsafeBytes { try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: $0) }
      }
    } catch {
      throw .invalid("agreement key")
    }
  }

  /// The private half as a key that can itself be wrapped.
  public var secretKey: SecretKey {
    // Not overwritten afterwards: the library lends its own memory here, and clears it when the key goes.
    SecretKey(SymmetricKey(data: key.rawRepresentation))
  }

  /// The public half: 32 bytes.
  public var publicKey: [UInt8] { Array(key.publicKey.rawRepresentation) }

  /// Unwraps what ``wrap(_:to:)`` made.
  public func unwrap(_ wrapped: [UInt8]) throws(CryptoError) -> SecretKey {
    try clearingStack(.large) { () throws(CryptoError) in try unwrapped(wrapped) }
  }

  private func unwrapped(_ wrapped: [UInt8]) throws(CryptoError) -> SecretKey {
    guard wrapped.count == 32 + SecretKey.wrappedByteCount else { throw .notAuthentic }
    let ephemeral = Array(wrapped.prefix(32))
    guard let peer = try? Curve25519.KeyAgreement.PublicKey(rawRepresentation: ephemeral),
      let shared = try? key.sharedSecretFromKeyAgreement(with: peer), Self.isContributory(shared)
    else { throw .notAuthentic }
    return try SecretKey(
      unwrapping: Array(wrapped.dropFirst(32)),
      under: Self.wrappingKey(shared, ephemeral: ephemeral, recipient: publicKey))
  }

  /// Wraps `secret` to a public key: ephemeral public key (32) ‖ RFC 3394 wrapping (40) under
  /// HKDF-SHA256(shared secret, ephemeral ‖ recipient).
  public static func wrap(_ secret: SecretKey, to publicKey: [UInt8]) throws(CryptoError) -> [UInt8] {
    try clearingStack(.large) { () throws(CryptoError) in try wrapped(secret, to: publicKey) }
  }

  private static func wrapped(_ secret: SecretKey, to publicKey: [UInt8]) throws(CryptoError) -> [UInt8] {
    let ephemeral = Curve25519.KeyAgreement.PrivateKey()
    guard let peer = try? Curve25519.KeyAgreement.PublicKey(rawRepresentation: publicKey),
      let shared = try? ephemeral.sharedSecretFromKeyAgreement(with: peer), isContributory(shared)
    else { throw .invalid("public key") }
    let own = Array(ephemeral.publicKey.rawRepresentation)
    return own + (try secret.wrapped(under: wrappingKey(shared, ephemeral: own, recipient: publicKey)))
  }

  /// RFC 7748, section 6.1: a public key of small order makes the secret zero, whatever the other key is.
  private static func isContributory(_ shared: SharedSecret) -> Bool {
    shared.withUnsafeBytes { bytes in bytes.reduce(0) { $0 | $1 } != 0 }
  }

  private static func wrappingKey(_ shared: SharedSecret, ephemeral: [UInt8], recipient: [UInt8]) -> SecretKey {
    let key = shared.hkdfDerivedSymmetricKey(
      using: SHA256.self, salt: Array("coffer".utf8), sharedInfo: Array("agreement".utf8) + ephemeral + recipient,
      outputByteCount: 32)
    return SecretKey(key)
  }

  public var description: String { "<agreement key>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
