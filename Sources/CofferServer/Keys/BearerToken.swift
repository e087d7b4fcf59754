internal import CofferCrypto
internal import CofferSystem

/// A secret that a caller shows in `Authorization: Bearer`: a prefix that secret scanners can find, and 32 random bytes
/// in hexadecimal. The store keeps only its hash.
public struct BearerToken: Sendable, CustomStringConvertible, CustomReflectable {
  public enum Kind: String, Sendable {
    case api = "coffer_api_"
    case device = "coffer_device_"
    /// The cookie of a person who signed in.
    case session = "coffer_session_"
    /// A link by which somebody becomes an administrator.
    case invitation = "coffer_invitation_"
  }

  /// To be shown once and kept nowhere.
  public let text: String

  public init(_ kind: Kind) {
    text = kind.rawValue + Randomness.bytes(32).hexadecimal
  }

  public var hash: [UInt8] { Self.hash(of: text) }

  /// What the store looks a token up by. A hash of 256 random bits needs no salt, and looking it up tells nothing of it.
  public static func hash(of text: String) -> [UInt8] { Digest.sha256(text.utf8) }

  public var description: String { "<token>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
