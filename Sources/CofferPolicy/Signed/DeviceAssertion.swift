public import CofferCrypto

/// The claims by which a device shows who it is (RFC 7523, section 3). Times are seconds since 1970.
public struct DeviceAssertion: Codable, Hashable, Sendable {
  /// The longest time from `iat` to `exp`, in seconds.
  public static let maximumLifetime: Int64 = 300
  /// How far the clocks of device and server may be apart, in seconds.
  public static let tolerance: Int64 = 60

  /// The device's id.
  public var iss: String
  /// The device's id again.
  public var sub: String
  /// The company's id.
  public var aud: String
  public var iat: Int64
  public var exp: Int64
  /// Random; the server takes each one once.
  public var jti: String

  public init(device: String, tenant: String, now: Int64, lifetime: Int64 = 120, id: String) {
    iss = device
    sub = device
    aud = tenant
    iat = now
    exp = now + lifetime
    jti = id
  }

  public func signed(with key: SigningKey) throws(PolicyRefusal) -> String {
    try SignedDocument(signing: StrictJSON.encode(self), as: .assertion, with: key).text
  }

  /// The device that a text claims to be an assertion of, before anything is verified: good for finding its key, and for nothing
  /// else.
  public static func claimedDevice(_ text: String) throws(PolicyRefusal) -> String {
    guard text.utf8.count <= maximumSize else { throw .oversize }
    let device = try SignedDocument.claims(DeviceAssertion.self, text, as: .assertion).iss
    guard PolicyText.isIdentifier(device) else { throw .malformed("assertion") }
    return device
  }

  /// Of the text, in bytes.
  private static let maximumSize = 4096

  /// Verifies an assertion of `device` to `tenant` at `now`. The caller finds the device by ``claimedDevice(_:)`` and takes each
  /// `jti` once, until `exp` and the tolerance are past.
  public init(
    verifying text: String, device: String, tenant: String, key: VerifyingKey, now: Int64
  ) throws(PolicyRefusal) {
    guard text.utf8.count <= Self.maximumSize else { throw .oversize }
    let document = try SignedDocument(verifying: text, as: .assertion) { $0 == key.keyID ? key : nil }
    let claims = try StrictJSON.decode(DeviceAssertion.self, from: document.payload, "assertion")
    guard claims.aud == tenant else { throw .otherTenant }
    guard claims.iss == device, claims.sub == device else { throw .otherAudience }
    let (lifetime, overflow) = claims.exp.subtractingReportingOverflow(claims.iat)
    guard !overflow, (1...Self.maximumLifetime).contains(lifetime), PolicyText.isIdentifier(claims.jti) else {
      throw .malformed("assertion")
    }
    guard claims.iat <= now + Self.tolerance, claims.exp > now - Self.tolerance else { throw .expired(.assertion) }
    self = claims
  }
}
