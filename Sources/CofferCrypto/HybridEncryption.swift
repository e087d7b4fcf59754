public import CofferSystem
internal import Crypto
internal import Foundation

/// Hybrid public key encryption (RFC 9180) in base mode: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM.
///
/// Whoever has the public key can seal a key, and only the private key opens it.
public struct HybridPublicKey: Hashable, Sendable {
  public static let byteCount = 32
  public let bytes: [UInt8]

  /// Throws `CryptoError.invalid` unless there are 32 bytes, and a point that makes a secret.
  public init(bytes: [UInt8]) throws(CryptoError) {
    guard Self.isContributory(bytes) else { throw .invalid("public key") }
    self.bytes = bytes
  }

  /// RFC 9180, section 7.1.4, demands that a shared secret of zeros is refused; the library does not. A point gives
  /// zeros with every private key or with none (RFC 7748, section 6.1), so that any key tells.
  static func isContributory(_ bytes: [UInt8]) -> Bool {
    guard bytes.count == byteCount, let key = try? Curve25519.KeyAgreement.PublicKey(rawRepresentation: bytes),
      let shared = try? Curve25519.KeyAgreement.PrivateKey().sharedSecretFromKeyAgreement(with: key)
    else { return false }
    return shared.withUnsafeBytes { bytes in bytes.reduce(0) { $0 | $1 } != 0 }
  }

  /// SHA-256 of the key: what people compare.
  public var fingerprint: [UInt8] { Digest.sha256(bytes) }

  /// Seals a key to this one; `info` is bound to the exchange, `context` to the ciphertext.
  public func seal(
    _ secret: SecretKey, info: [UInt8], authenticating context: [UInt8]
  ) throws(CryptoError) -> HybridBox {
    var plaintext = secret.key.withUnsafeBytes { Data($0) }
    defer { plaintext.withUnsafeMutableBytes { overwrite($0) } }
    do {
      return try clearingStack(.large) {
        var sender = try HPKE.Sender(
          recipientKey: Curve25519.KeyAgreement.PublicKey(rawRepresentation: bytes),
          ciphersuite: HybridKey.suite, info: Data(info))
        let ciphertext = try sender.seal(plaintext, authenticating: context)
        return HybridBox(encapsulatedKey: Array(sender.encapsulatedKey), ciphertext: Array(ciphertext))
      }
    } catch {
      throw .invalid("public key")
    }
  }
}

/// A key that was sealed to a ``HybridPublicKey``.
public struct HybridBox: Hashable, Sendable {
  public static let encapsulatedKeyByteCount = 32
  /// A key of 32 bytes and a tag of 16.
  public static let ciphertextByteCount = 48

  /// The ephemeral public key.
  public let encapsulatedKey: [UInt8]
  public let ciphertext: [UInt8]

  public init(encapsulatedKey: [UInt8], ciphertext: [UInt8]) {
    self.encapsulatedKey = encapsulatedKey
    self.ciphertext = ciphertext
  }
}

/// The private half of a ``HybridPublicKey``.
public struct HybridKey: Sendable, CustomStringConvertible, CustomReflectable {
  static let suite = HPKE.Ciphersuite(kem: .Curve25519_HKDF_SHA256, kdf: .HKDF_SHA256, aead: .AES_GCM_256)
  public static let byteCount = 32
  private let key: Curve25519.KeyAgreement.PrivateKey

  /// A new random key.
  public init() { key = clearingStack(.large) { Curve25519.KeyAgreement.PrivateKey() } }

  /// A key from its stored bytes. Throws `CryptoError.invalid` unless there are 32.
  public init(_ bytes: SecretBytes) throws(CryptoError) {
    do {
      key = try clearingStack(.large) {
        try bytes.withUnsafeBytes { try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: $0) }
      }
    } catch {
      throw .invalid("private key")
    }
  }

  /// The 32 bytes, for storage.
  public var secretBytes: SecretBytes {
    // Not overwritten afterwards: the library lends its own memory here, and clears it when the key goes.
    key.rawRepresentation.withUnsafeBytes { SecretBytes(copying: $0) }
  }

  public var publicKey: HybridPublicKey {
    guard let key = try? HybridPublicKey(bytes: Array(key.publicKey.rawRepresentation)) else {
      fatalError("a private key has a public half")
    }
    return key
  }

  /// Opens what ``HybridPublicKey/seal(_:info:authenticating:)`` made. Throws `notAuthentic` for another key, info or
  /// context, and for altered bytes.
  public func open(
    _ box: HybridBox, info: [UInt8], authenticating context: [UInt8]
  ) throws(CryptoError) -> SecretKey {
    guard HybridPublicKey.isContributory(box.encapsulatedKey) else { throw .notAuthentic }
    do {
      return try clearingStack(.large) {
        var recipient = try HPKE.Recipient(
          privateKey: key, ciphersuite: Self.suite, info: Data(info), encapsulatedKey: Data(box.encapsulatedKey))
        var plaintext = try recipient.open(box.ciphertext, authenticating: context)
        defer { plaintext.withUnsafeMutableBytes { overwrite($0) } }
        return try SecretKey(plaintext.withUnsafeBytes { SecretBytes(copying: $0) })
      }
    } catch {
      throw .notAuthentic
    }
  }

  public var description: String { "<hybrid key>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
