/// What an administrator hands to a person who is to join: `COF1-<code>-<fingerprint>`.
///
/// The code is a secret that works once. The fingerprint is that of the company's root key; with it, a device tells
/// the company's server from any other before it believes a word. Both are base32 (RFC 4648) in lower case without
/// padding.
public struct EnrollmentCode: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  public static let secretByteCount = 20
  public static let fingerprintByteCount = 32

  /// What the server knows the code by: the text between the hyphens.
  public let secret: String
  /// SHA-256 of the company's root key.
  public let fingerprint: [UInt8]

  /// - Parameters:
  ///   - secret: 20 random bytes.
  ///   - fingerprint: SHA-256 of the root key: 32 bytes.
  public init(secret: [UInt8], fingerprint: [UInt8]) {
    precondition(secret.count == Self.secretByteCount && fingerprint.count == Self.fingerprintByteCount)
    self.secret = Base32.encode(secret)
    self.fingerprint = fingerprint
  }

  /// Reads a code. White space around it is allowed, as is upper case, since people copy and type it. Nil when it is
  /// anything else.
  public init?(_ text: some StringProtocol) {
    guard text.utf8.count <= 256 else { return nil }
    var trimmed = Substring(text)
    while trimmed.first?.isWhitespace == true { trimmed.removeFirst() }
    while trimmed.last?.isWhitespace == true { trimmed.removeLast() }
    let parts = trimmed.lowercased().utf8.split(
      separator: UInt8(ascii: "-"), maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].elementsEqual("cof1".utf8),
      let secret = Base32.decode(parts[1]), secret.count == Self.secretByteCount,
      let fingerprint = Base32.decode(parts[2]), fingerprint.count == Self.fingerprintByteCount
    else { return nil }
    self.init(secret: secret, fingerprint: fingerprint)
  }

  /// Whether `text` may be the secret part. A server looks nothing else up.
  public static func isSecret(_ text: String) -> Bool {
    text.utf8.count == 32 && Base32.decode(text.utf8)?.count == secretByteCount
  }

  /// The whole code, to be shown once to the person who hands it on.
  public var text: String { "COF1-\(secret)-\(Base32.encode(fingerprint))" }

  public var description: String { "<enrolment code>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
