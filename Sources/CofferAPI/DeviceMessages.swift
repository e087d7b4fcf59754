/// The form of `POST /v1/device/token` (RFC 7523, section 2.1).
public enum TokenRequest {
  public static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
}

/// The answer to `POST /v1/device/token` (RFC 6749, section 5.1).
public struct TokenResponse: Codable, Hashable, Sendable {
  public var accessToken: String
  /// `Bearer`.
  public var tokenType: String
  /// Seconds.
  public var expiresIn: Int64

  public init(accessToken: String, expiresIn: Int64) {
    self.accessToken = accessToken
    tokenType = "Bearer"
    self.expiresIn = expiresIn
  }

  private enum CodingKeys: String, CodingKey {
    case accessToken = "access_token"
    case tokenType = "token_type"
    case expiresIn = "expires_in"
  }
}

/// The answer to `GET /v1/device/policy`, with the policy's digest as its strong ETag.
public struct PolicyResponse: Codable, Hashable, Sendable {
  /// A keyset, signed by the root key.
  public var keyset: String
  /// A policy, signed by a key of the keyset.
  public var policy: String

  public init(keyset: String, policy: String) {
    self.keyset = keyset
    self.policy = policy
  }
}

/// The body of `POST /v1/device/status`.
public struct StatusRequest: Codable, Hashable, Sendable {
  /// 16 to 64 random bytes, base64url.
  public var nonce: String

  public init(nonce: String) { self.nonce = nonce }
}

/// The answer to `POST /v1/device/status`.
public struct StatusResponse: Codable, Hashable, Sendable {
  /// A status, signed by a key of the present keyset.
  public var status: String

  public init(status: String) { self.status = status }
}
