public import CofferSystem
internal import Crypto
internal import Foundation

/// An Ed25519 private key (RFC 8032).
public struct SigningKey: Sendable, CustomStringConvertible, CustomReflectable {
  private let key: Curve25519.Signing.PrivateKey

  /// A new random key.
  public init() { key = clearingStack(.large) { Curve25519.Signing.PrivateKey() } }

  /// A key from its stored seed. Throws `CryptoError.invalid` unless there are 32 bytes.
  public init(seed: SecretBytes) throws(CryptoError) {
    do {
      key = try clearingStack(.large) {
        try seed.withUnsafeBytes { try Curve25519.Signing.PrivateKey(rawRepresentation: $0) }
      }
    } catch {
      throw .invalid("signing key")
    }
  }

  /// The 32-byte seed, for storage.
  public var seed: SecretBytes {
    // Not overwritten afterwards: the library lends its own memory here, and clears it when the key goes.
    key.rawRepresentation.withUnsafeBytes { SecretBytes(copying: $0) }
  }

  public var verifyingKey: VerifyingKey { VerifyingKey(valid: Array(key.publicKey.rawRepresentation)) }

  /// The 64-byte signature of `message`.
  public func signature(for message: [UInt8]) -> [UInt8] {
    do {
      return try clearingStack(.large) { Array(try key.signature(for: message)) }
    } catch {
      fatalError("Ed25519 signing cannot fail for a valid key")
    }
  }

  public var description: String { "<signing key>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// An Ed25519 public key: 32 bytes.
public struct VerifyingKey: Hashable, Sendable {
  public static let byteCount = 32
  public let bytes: [UInt8]

  init(valid bytes: [UInt8]) { self.bytes = bytes }

  /// Throws `CryptoError.invalid` unless `bytes` are 32 bytes that the library accepts as a key, and stand for no point of
  /// small order.
  public init(bytes: [UInt8]) throws(CryptoError) {
    guard bytes.count == Self.byteCount, !SmallOrderPoint.isEncoded(by: bytes),
      (try? Curve25519.Signing.PublicKey(rawRepresentation: bytes)) != nil
    else {
      throw .invalid("public key")
    }
    self.bytes = bytes
  }

  /// Whether `signature` is this key's signature of `message`.
  public func isValid(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: bytes) else { return false }
    return key.isValidSignature(signature, for: message)
  }

  /// SHA-256 of the key: what people compare and enrolment codes carry.
  public var fingerprint: [UInt8] { Digest.sha256(bytes) }
}
