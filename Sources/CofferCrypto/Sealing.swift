internal import Crypto
internal import Foundation

/// AES-256-GCM (NIST SP 800-38D) with random 96-bit nonces, for values of moderate size.
///
/// Layout: nonce (12) ‖ ciphertext ‖ tag (16). A key must seal at most 2³² values; callers derive a key for each use.
public enum Sealing {
  public static let nonceByteCount = 12
  public static let tagByteCount = 16
  /// What sealing adds.
  public static let overhead = nonceByteCount + tagByteCount

  public static func seal(
    _ plaintext: [UInt8], key: SecretKey, authenticating context: [UInt8]
  ) throws(CryptoError) -> [UInt8] {
    do {
      let box = try AES.GCM.seal(plaintext, using: key.key, authenticating: context)
      return Array(box.nonce) + Array(box.ciphertext) + Array(box.tag)
    } catch {
      throw .invalid("plaintext")
    }
  }

  /// Throws `CryptoError.notAuthentic` unless `sealed` was made by ``seal(_:key:authenticating:)`` with the same key and
  /// context.
  public static func open(
    _ sealed: [UInt8], key: SecretKey, authenticating context: [UInt8]
  ) throws(CryptoError) -> [UInt8] {
    do {
      return Array(try AES.GCM.open(AES.GCM.SealedBox(combined: sealed), using: key.key, authenticating: context))
    } catch {
      throw .notAuthentic
    }
  }
}
